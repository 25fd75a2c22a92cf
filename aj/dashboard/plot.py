"""Small plots of the last hour: bars as numbers, which a template draws. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aj.dashboard.words import time_of_day
from aj.store import Minute

WIDTH, HEIGHT, GAP = 480, 72, 2


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the plot, in its own units from the upper left corner, and what it says."""

    x: int
    y: float
    width: int
    height: float
    says: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars, the most in one minute, all together, and the same in words for whoever cannot see it."""

    name: str
    bars: list[Bar]
    most: int
    total: int
    words: str


def plot(name: str, what: str, minutes: Sequence[Minute], counts: Sequence[int]) -> Plot:
    """`counts` has how many there were in each of the minutes; `what` says of what, as in `jobs succeeded`."""
    most, total, step = max(counts, default=0), sum(counts), WIDTH // max(1, len(counts))
    bars = [
        Bar(
            at * step,
            HEIGHT - (height := max(2.0, round(HEIGHT * count / most, 1))),
            step - GAP,
            height,
            f"{time_of_day(minute.at_ms)} UTC: {count}",
        )
        for at, (minute, count) in enumerate(zip(minutes, counts, strict=True))
        if count
    ]
    words = f"{total} {what} in the last hour"
    if total:
        busiest = minutes[max(range(len(counts)), key=counts.__getitem__)]
        words += f", at most {most} in a minute, at {time_of_day(busiest.at_ms)} UTC"
    return Plot(name, bars, most, total, f"{words}.")
