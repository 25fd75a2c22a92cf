"""When a webhook is tried again, and when a job is. Pure: no clock, no store."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

RETRY_AFTER_CAP_S = 86_400.0
JITTER = 0.2


def delay_before_s(
    attempt: int,
    schedule_s: Sequence[float],
    retry_after_s: float | None = None,
    uniform: Callable[[float, float], float] = random.uniform,
) -> float | None:
    """Seconds to wait before attempt number `attempt` (from 1), or None where the schedule is spent.

    The schedule's delay is moved by up to 20 % either way, so that many deliveries that failed together
    do not come back together. A receiver's Retry-After can only lengthen it, and by a day at most.
    """
    if attempt > len(schedule_s):
        return None
    delay_s = schedule_s[attempt - 1] * (1 + uniform(-JITTER, JITTER))
    return max(delay_s, min(retry_after_s or 0.0, RETRY_AFTER_CAP_S))


def retry_delay_s(attempts: int, retries: int, delays_s: Sequence[float]) -> float | None:
    """Seconds before a job runs again that failed for the `attempts`th time, or None where it has no retry left.

    `delays_s` are the waits in order; the last one serves all further retries.
    """
    if attempts > retries:
        return None
    return delays_s[min(attempts, len(delays_s)) - 1]
