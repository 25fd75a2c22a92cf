"""Whether an answer of 410 says what it has to: that the result of a job is past the life that its document gave it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from aj.check.exchange import Exchange

_CLOCKS_APART = timedelta(seconds=1)


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
        return datetime.fromisoformat(moment) < datetime.now(UTC) + _CLOCKS_APART
    except (TypeError, ValueError):  # no text, no time, or none of any zone
        return False
