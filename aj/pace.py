"""How long a caller is told to wait before it asks again, and when a job is expected to end. Pure: no clock, no store.

The rule: wait until the least plausible end, then let the waits grow with the job's age. Then whoever obeys is late
by a share of the job's whole time, and asks as often as the plausible ends lie apart. docs/pace.md shows the curve.
"""

from __future__ import annotations

import math
import statistics
import struct
from dataclasses import dataclass
from functools import lru_cache

# Runs that are remembered of a task, or of a queue.
KEPT = 64
# Fewer than these say nothing.
FEWEST = 5
# A usual run is at most this many times the shortest. A little more than 4, since lengths are kept rounded.
ALIKE = 4.01
# So many must be usual for what is to come to be taken to be like what was; the others may have been held up. None
# may be longer than so many times the shortest: eight polls lead to four times that, and eight more to a hundred.
MOSTLY, OUTLYING = 0.9, 64
# Of the jobs ahead, those beyond the next few count less: the pace may change until it is their turn.
NEAR, BEYOND = 16, 0.7
LATE_WHERE_ALIKE = 0.2
LATE_WHERE_UNKNOWN = 0.5
# Eight polls span a factor of 4 in whole seconds only if a poll at 4 s or later is rounded up from .4 on.
ROUNDED_DOWN_UNTIL_S = 4.0
ROUNDED_UP_BY_S = 0.6

MOST_TEXTS = 64
_LEAST_S, _RATIO = 0.001, 1.001


def packed(length_s: float) -> bytes:
    """A length as it is remembered: two bytes, on a logarithmic scale of a thousandth a step."""
    steps = round(math.log(max(length_s, _LEAST_S) / _LEAST_S) / math.log(_RATIO))
    return min(steps, 0xFFFF).to_bytes(2, "big")


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long the last runs of a task, or in a queue, took."""

    seconds: tuple[float, ...] = ()

    @classmethod
    @lru_cache(MOST_TEXTS)
    def unpacked(cls, text: bytes) -> Lengths:
        """The lengths that a text remembers. The same text comes again and again, until another run has ended."""
        count = len(text) // 2
        steps = struct.unpack(f">{count}H", text[: 2 * count])
        return cls(tuple([_LEAST_S * _RATIO**each for each in steps]))

    @property
    def say_something(self) -> bool:
        return len(self.seconds) >= FEWEST

    @property
    def usual(self) -> tuple[float, ...]:
        """Those of at most four times the shortest. What is under a second counts as one: nobody can ask sooner."""
        most_s = ALIKE * max(1.0, min(self.seconds))
        return tuple([each for each in self.seconds if each <= most_s])

    @property
    def are_alike(self) -> bool:
        """Whether nearly all lie within a factor of 4, so that one that was held up does not change the rule."""
        if not self.say_something or max(self.seconds) > OUTLYING * max(1.0, min(self.seconds)):
            return False
        return len(self.usual) >= MOSTLY * len(self.seconds)

    @property
    def plausible_s(self) -> tuple[float, float]:
        """The shortest and the longest that is plausible where they are alike: those seen, and twice what lies between
        two neighbours on average, since the next one may be shorter or longer than all that were seen."""
        usual = self.usual
        shortest_s, longest_s = min(usual), max(usual)
        margin = math.pow(longest_s / shortest_s, 2 / (len(usual) - 1))
        return shortest_s / margin, longest_s * margin

    def least_sum_s(self, count: int, workers: int) -> float:
        """The least plausible time in which `workers` get through `count` further jobs: two deviations below the mean.

        The normal law serves long queues. Its bound falls to nothing where a few very different jobs wait; there
        the geometric mean serves, than which no mean is less. Work that other workers have begun does not count.
        """
        said, begun = len(self.seconds), workers - 1
        counted = count - (1 - BEYOND) * max(0, count - NEAR)
        share = 2 * math.sqrt(1 / count + 1 / said)
        logs = tuple(math.log(each) for each in self.seconds)
        mean_s, log_mean = statistics.fmean(self.seconds), statistics.fmean(logs)
        # Far quicker than `statistics.pstdev`, and this is done for each status request.
        spread = math.dist(self.seconds, (mean_s,) * said) / math.sqrt(said) / mean_s
        log_spread = math.dist(logs, (log_mean,) * said) / math.sqrt(said)
        if said < FEWEST:
            spread, log_spread = max(1.0, spread), max(1.0, log_spread)
        normal_s = mean_s * (counted * (1 - share * spread) - begun * (1 + spread**2) / 2)
        geometric_s = math.exp(log_mean - share * log_spread) * (counted - begun)
        return max(0.0, normal_s, geometric_s) / workers


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known of an active job at one moment.

    `age_s` counts from its submission, `ran_s` from its start (None while it is queued). `ahead` is the number of
    jobs before it in its queue, None where it stands in none. `due_in_s` is what is left of a delay before another
    attempt. `workers` serve its queue, where `running` jobs run. `queue` and `task` are the lengths of recent runs,
    and `known_at_first` is how many of its task were known when it was submitted.
    """

    age_s: float = 0.0
    ran_s: float | None = None
    ahead: int | None = None
    due_in_s: float = 0.0
    workers: int = 0
    running: int = 0
    queue: Lengths = Lengths()
    task: Lengths = Lengths()
    known_at_first: int = KEPT

    @property
    def position(self) -> int | None:
        """The place in the queue, 1 for the next; None where it stands in none."""
        return None if self.ran_s is not None or self.ahead is None else self.ahead + 1

    @property
    def eta_s(self) -> int | None:
        """Seconds until the expected end, at least 1; None where nothing is known to expect it by."""
        ran_s, starts_in_s = self.ran_s or 0.0, self._starts_in_s()[1]
        still_possible = [each for each in self.task.seconds if each > ran_s]
        if starts_in_s is None or not self.task.say_something or not still_possible:
            return None
        return max(1, round(starts_in_s + statistics.median(still_possible) - ran_s))

    def retry_after_s(self, most_late_s: float = math.inf) -> int:
        """Whole seconds for Retry-After, at least 1; `most_late_s` bounds how late the end may be learnt of."""
        starts_in_s, expected_s = self._starts_in_s()
        ran_s, is_sure, ends_in_s = self.ran_s or 0.0, False, starts_in_s
        if self.task.are_alike:
            least_s, most_s = self.task.plausible_s
            is_sure = expected_s is not None and (not expected_s or self.queue.are_alike)
            if self.ran_s is not None:
                # Who began to ask while nothing was known has no polls left for smaller steps.
                is_sure = ran_s <= most_s and self.known_at_first >= FEWEST
            ends_in_s += max(0.0, least_s - ran_s)
        late_s = (LATE_WHERE_ALIKE if is_sure else LATE_WHERE_UNKNOWN) * (max(0.0, self.age_s) + ends_in_s)
        wait_s = ends_in_s + min(max(1.0, late_s), most_late_s)
        if self.age_s + wait_s >= ROUNDED_DOWN_UNTIL_S:
            wait_s += ROUNDED_UP_BY_S
        return max(1, math.floor(wait_s))

    def _starts_in_s(self) -> tuple[float, float | None]:
        """Seconds until the start: the least that is plausible, and what is expected, None where nobody can say."""
        if self.ran_s is not None:
            return 0.0, 0.0
        ahead = self.ahead or 0
        if self.workers - self.running > ahead:
            return self.due_in_s, self.due_in_s
        if not self.workers or not self.queue.seconds:
            return self.due_in_s, None
        least_s = self.queue.least_sum_s(ahead, self.workers) if ahead else 0.0
        expected_s = (ahead + 0.5) * statistics.fmean(self.queue.seconds) / self.workers
        return self.due_in_s + least_s, self.due_in_s + expected_s


NOTHING_KNOWN = Outlook()
