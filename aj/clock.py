"""The one door through which time enters.

Times are whole milliseconds since the Unix epoch, UTC. Stored times come from the store's own clock
wherever that can be had, so that hosts whose clocks differ agree; this module is for the rest.
Tests replace these functions instead of sleeping.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

# The last moment that RFC 3339 can write.
LAST_MS = 253_402_300_799_999


def now_ms() -> int:
    """This host's wall clock, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds on a clock that never steps; only differences mean something."""
    return time.monotonic()


def rfc3339(at_ms: int) -> str:
    """`at_ms` as RFC 3339 in UTC with milliseconds, such as `2026-11-29T15:00:00.123Z`."""
    seconds, ms = divmod(at_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{ms:03d}Z"


def from_rfc3339(text: str) -> int:
    """The milliseconds since the epoch that `text` names. Raises: ValueError."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
