"""How long a caller is told to wait before it asks again. Pure: no clock, no store."""

from __future__ import annotations

import math

LONGEST_S = 60
SHARE = 0.2


def retry_after_s(age_s: float) -> int:
    """Whole seconds for Retry-After while a job is active; `age_s` is the time since its submission.

    A fifth of the age so far: a caller that obeys learns of the end at most about 20 % of the job's whole
    time late, and its polls grow with the logarithm of that time. At least 1 s, since the header counts
    whole seconds and 0 would invite a busy loop; at most 60 s, so that no caller sleeps through an end.
    """
    return min(LONGEST_S, max(1, math.floor(age_s * SHARE)))
