"""Whether an answer of 410 says what it has to: that the result of a job is past the life that its document gave it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aj.check.exchange import Exchange
from aj.clock import from_rfc3339, now_ms

_CLOCKS_APART_MS = 1000


def life_over(exchanges: Iterable[Exchange], expires_at: Mapping[str, Any]) -> str:
    """Which job of these, by its id, is 410 after its time, in words; nothing where none is."""
    for exchange in exchanges:
        if exchange.status != 410:
            continue
        for job_id, moment in expires_at.items():
            if job_id in exchange.request.url and _is_past(moment):
                return f"the result of a job lived only until {moment}; a longer life is needed"
    return ""


def _is_past(moment: Any) -> bool:
    try:
        return from_rfc3339(moment) < now_ms() + _CLOCKS_APART_MS
    except (TypeError, ValueError, OverflowError):  # no text, or no time
        return False
