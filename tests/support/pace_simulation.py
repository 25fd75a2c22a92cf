"""A queue, its workers and a caller that obeys, all pretended: how often it asks, and how late it learns of the end."""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from aj.pace import KEPT, Lengths, Outlook

Draw = Callable[[Random], float]


@dataclass(frozen=True, slots=True)
class Case:
    """One job to be waited for. `ahead` jobs stand before it, and `draw` gives the lengths of all, in seconds.

    Where jobs stand before it, or `busy`, all workers run one. `between_s` is what a worker needs between two jobs.
    `remembered` is how many earlier runs are known when it is submitted; those of the jobs before it come to be
    known as they end. `of_new_task` means that they tell of the queue alone, since its task has never run. `slower` is
    how many times as long as now the earlier runs took.
    """

    draw: Draw
    ahead: int = 0
    workers: int = 1
    busy: bool = False
    between_s: float = 0.04
    remembered: int = KEPT
    of_new_task: bool = False
    slower: float = 1.0


@dataclass(frozen=True, slots=True)
class Course:
    """What became of one job: its whole time, the polls of its caller, and how late the last one was."""

    whole_s: float
    polls: int
    late_s: float
    is_within_seen: bool


def within(factor: float, least_s: float) -> Draw:
    """Lengths from `least_s` to `factor` times that, every ratio as likely."""
    return lambda random: least_s * math.exp(random.uniform(0, math.log(factor)))


def within_four(least_s: float) -> Draw:
    return within(4, least_s)


def held_up(least_s: float) -> Draw:
    """The same, but one of twenty takes up to sixteen times as long as it would have."""
    usual = within_four(least_s)
    return lambda random: usual(random) * (1 if random.random() < 0.95 else math.exp(random.uniform(0, math.log(16))))


def wild(random: Random) -> float:
    """Lengths from 0.05 s to 10 min, every order of magnitude as likely."""
    return math.exp(random.uniform(math.log(0.05), math.log(600)))


def simulate(case: Case, seed: int) -> Course:
    """One job from its submission to the poll that sees its end."""
    random = Random(seed)
    remembered = [case.draw(random) * case.slower for _ in range(case.remembered)]
    are_busy = case.busy or case.ahead > 0
    free_at_s = [case.draw(random) * random.random() if are_busy else 0.0 for _ in range(case.workers)]
    heapq.heapify(free_at_s)
    started_s: list[float] = []
    ended: list[tuple[float, float]] = []
    for _ in range(case.ahead):
        length_s = case.draw(random)
        started_s.append(free_at_s[0] + case.between_s)
        ended.append((started_s[-1] + length_s, length_s))
        heapq.heapreplace(free_at_s, ended[-1][0])
    ended.sort()
    starts_s, length_s = free_at_s[0] + case.between_s, case.draw(random)
    ends_s, at_s, polls = starts_s + length_s, 0.0, 0
    while polls == 0 or at_s < ends_s:
        known = remembered + [each for _, each in ended[: bisect.bisect_right(ended, (at_s, math.inf))]]
        seen = Lengths(tuple(known[-KEPT:]))
        outlook = Outlook(
            age_s=at_s,
            ran_s=at_s - starts_s if at_s >= starts_s else None,
            ahead=case.ahead - bisect.bisect_right(started_s, at_s) if at_s < starts_s else None,
            workers=case.workers,
            running=case.workers if are_busy else int(at_s >= starts_s),
            queue=seen,
            task=Lengths() if case.of_new_task else seen,
            known_at_first=0 if case.of_new_task else case.remembered,
        )
        at_s += outlook.retry_after_s()
        polls += 1
    is_within_seen = bool(remembered) and min(remembered) <= length_s <= max(remembered)
    return Course(ends_s, polls, at_s - ends_s, is_within_seen)
