"""How long things may take, and when to ask again. Knows no HTTP but two header fields, and asks nobody."""

from __future__ import annotations

import email.utils
import math
import random
import re
import threading
from collections.abc import Mapping

from aj import clock

# No Retry-After is obeyed for longer than this, in seconds; `aj.schedule` treats receivers the same.
RETRY_AFTER_CAP_S = 86_400.0
BACKOFF_FIRST_S, BACKOFF_MOST_S = 0.1, 5.0
RETRY_AFTER_JITTER = 0.1


class Deadline:
    """`timeout_s` from now, on a clock that never steps; None is for ever."""

    def __init__(self, timeout_s: float | None) -> None:
        self._ends_at_s = math.inf if timeout_s is None else clock.monotonic_s() + timeout_s

    def left_s(self) -> float:
        """Seconds left, at least 0, perhaps infinite."""
        return max(0.0, self._ends_at_s - clock.monotonic_s())

    def sooner(self, timeout_s: float) -> Deadline:
        """`timeout_s` from now, or this one where it comes first."""
        return Deadline(min(timeout_s, self.left_s()))


def pause(pause_s: float) -> None:
    """Lets `pause_s` seconds go by. A signal's handler may raise meanwhile."""
    threading.Event().wait(min(pause_s, threading.TIMEOUT_MAX))


def retry_after_s(fields: Mapping[str, str]) -> float | None:
    """The seconds that an answer's `Retry-After` asks for, from 0 to a day; None where it says nothing that counts.

    A date is compared with the `Date` of the same answer, so that it means the same whatever this host's clock says.

    Source: RFC 9110, section 10.2.3.
    """
    text = fields.get("Retry-After", "").strip()
    if re.fullmatch("[0-9]+", text):
        return min(float(text[:20]), RETRY_AFTER_CAP_S)
    at_s = _date_s(text)
    if at_s is None:
        return None
    sent_s = _date_s(fields.get("Date", ""))
    now_s = clock.now_ms() / 1000 if sent_s is None else sent_s
    return min(max(0.0, at_s - now_s), RETRY_AFTER_CAP_S)


def repeat_after_s(attempt: int, asked_s: float | None) -> float:
    """Seconds to wait after attempt number `attempt` (from 1) failed; `asked_s` is what the server asks for.

    Never less than that, and a little by chance more, so that clients who were refused together do not come back
    together.
    """
    if asked_s is not None and asked_s > 0:
        return asked_s * random.uniform(1, 1 + RETRY_AFTER_JITTER)  # noqa: S311  # no secret
    most_s = min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2 ** min(attempt - 1, 20))
    return random.uniform(most_s / 2, most_s)  # noqa: S311  # no secret


def _date_s(text: str) -> float | None:
    """An HTTP-date as seconds since the epoch. The form without a zone means UTC too."""
    try:
        email.utils.parsedate_to_datetime(text)  # which is stricter
        parsed = email.utils.parsedate_tz(text)
        return None if parsed is None else float(email.utils.mktime_tz((*parsed[:9], parsed[9] or 0)))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
