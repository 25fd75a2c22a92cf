"""What is played: how long jobs take, the queues that they go through, and what fits into a given time. Values only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from aj.pace import ALIKE, KEPT, LATE_WHERE_ALIKE, LATE_WHERE_UNKNOWN

MOST_WATCHED = 40
# What a worker needs between two jobs, and what is added to each estimate, since it is one.
BETWEEN_S, MARGIN = 0.05, 1.1


@dataclass(frozen=True, slots=True)
class Kind:
    """Jobs of one task of `tests.pace.tasks`, which takes from `least_s` to `most_s`, every ratio as likely."""

    task: str
    least_s: float
    most_s: float

    def draw(self, random: Random) -> float:
        return self.least_s * math.exp(random.uniform(0, math.log(self.most_s / self.least_s)))

    @property
    def mean_s(self) -> float:
        return (self.most_s - self.least_s) / math.log(self.most_s / self.least_s)

    @property
    def is_wild(self) -> bool:
        return self.most_s > ALIKE * self.least_s

    def __str__(self) -> str:
        return f"{self.least_s:g} to {self.most_s:g} s"


@dataclass(frozen=True, slots=True)
class Phase:
    """Jobs are submitted at once to an idle queue, `rounds` times: one for each worker, and more so that `ahead` are
    before the last. `is_first` where nothing is known yet of the task and its queue.
    """

    ahead: int
    rounds: int = 1
    is_first: bool = False

    @property
    def behind(self) -> int:
        """How many are submitted behind the first; workers take some of them before the last is there."""
        return self.ahead + self.ahead // 10


class Known(StrEnum):
    """What is known of a job when it is submitted: how long its task runs, and when it will start."""

    ALIKE = "alike"
    WILD = "wild"
    MIXED = "mixed"  # the task's runs are alike, but those of the queue that it has to wait for are not
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Row:
    """What is counted together. `polls` and `share`, of the whole time, are what is promised for it."""

    lengths: str
    known: Known
    ahead: int

    @property
    def polls(self) -> int:
        return 8 if self.known is Known.ALIKE else 16

    @property
    def share(self) -> float:
        return LATE_WHERE_ALIKE if self.known is Known.ALIKE else LATE_WHERE_UNKNOWN

    @property
    def queue(self) -> str:
        """What a person reads of `ahead`."""
        if self.known is Known.NOTHING:
            return "nothing known at first"
        return f"{self.ahead:,}" if self.ahead else "none, a worker is free"


@dataclass(frozen=True, slots=True)
class Series:
    """What one queue with `workers` sees. Where there is a kind `beside`, every second job is of that one, and only
    those of `kind` are watched."""

    kind: Kind
    workers: int
    phases: tuple[Phase, ...]
    beside: Kind | None = None

    @property
    def queue(self) -> str:
        """Each series has a queue of its own, named after its task."""
        return f"q:{self.kind.task}"

    def draws(self, phase: Phase, random: Random) -> list[tuple[str, float]]:
        """Task and length of each job of one round."""
        kinds = (self.kind, self.beside or self.kind)
        drawn = [kinds[number % 2] for number in range(self.workers + phase.behind)]
        return [(kind.task, kind.draw(random)) for kind in drawn]

    def watched(self, phase: Phase) -> set[int]:
        """Numbers of the jobs that have a caller: those that start at once, and some of the others up to the last."""
        ours = range(0, self.workers + phase.behind, 1 if self.beside is None else 2)
        waiting = [number for number in ours if number >= self.workers]
        step = max(1, len(waiting) // (KEPT if phase.is_first else MOST_WATCHED))
        return {*(number for number in ours if number < self.workers), *waiting[::-step]}

    def row(self, phase: Phase, number: int) -> Row:
        """Where job `number` of a round of `phase` counts."""
        lengths = f"{self.kind}" if self.beside is None else f"{self.kind}, beside {self.beside}"
        ahead = 0 if number < self.workers and not phase.is_first else phase.ahead
        if phase.is_first:
            return Row(lengths, Known.NOTHING, ahead)
        if self.kind.is_wild:
            return Row(lengths, Known.WILD, ahead)
        return Row(lengths, Known.MIXED if self.beside and ahead else Known.ALIKE, ahead)

    def round_s(self, phase: Phase) -> float:
        """How long one round is expected to take until all its jobs have ended."""
        kinds = (self.kind, self.beside or self.kind)
        mean_s = sum(each.mean_s for each in kinds) / 2 + BETWEEN_S
        longest_s = max(each.most_s for each in kinds)
        return MARGIN * ((self.workers + phase.behind) * mean_s / self.workers + longest_s - mean_s) + 1.0

    def within(self, seconds: float) -> Series:
        """This series with those phases and rounds only that come to their end, and are learnt of, in time."""
        kept: list[Phase] = []
        for phase in self.phases:
            round_s = self.round_s(phase)
            share = self.row(phase, self.workers).share
            rounds = min(phase.rounds, int((seconds - share * round_s) / round_s))
            if rounds < 1:
                break
            kept.append(replace(phase, rounds=rounds))
            seconds -= rounds * round_s
        return replace(self, phases=tuple(kept))


def _first(workers: int, runs: int = KEPT) -> Phase:
    """At least so many runs that the memory is full."""
    return Phase(runs - workers, is_first=True)


# Those that take longest come first, since their workers are started first.
ALL = (
    Series(Kind("ten_minutes", 150.0, 600.0), 32, (_first(32), Phase(10))),
    Series(Kind("wild", 0.05, 600.0), 32, (_first(32), Phase(100))),
    Series(Kind("minutes", 30.0, 120.0), 16, (_first(16), Phase(0, 3), Phase(10, 2), Phase(100))),
    Series(Kind("seconds", 5.0, 20.0), 16, (_first(16), Phase(0, 4), Phase(10, 4), Phase(100), Phase(1000))),
    Series(
        Kind("mixed", 1.0, 4.0),
        8,
        (_first(8, 2 * KEPT), Phase(0, 4), Phase(100, 2)),
        Kind("mixed_wild", 0.05, 60.0),
    ),
    Series(Kind("second", 1.0, 4.0), 4, (_first(4), Phase(0, 16), Phase(10, 4), Phase(100, 2), Phase(1000))),
    Series(Kind("tenths", 0.3, 1.2), 4, (_first(4), Phase(0, 16), Phase(10, 4), Phase(100, 2), Phase(1000))),
    Series(
        Kind("hundredths", 0.05, 0.2),
        4,
        (_first(4), Phase(0, 16), Phase(10, 4), Phase(100, 2), Phase(1000), Phase(10_000)),
    ),
)


def planned(minutes: float) -> tuple[Series, ...]:
    """What can be played side by side in so many minutes."""
    fitting = [each.within(60 * minutes) for each in ALL]
    return tuple(each for each in fitting if each.phases)
