"""What was measured, and what is made of it: medians, their spread, ratios. Pure values.

A round measures all rows one after the other, so that its figures are neighbours in time; a ratio is one of two
figures of the same round. The machine may be twice as quick a minute later, and the ratio then still holds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Figures = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some values, the least and the greatest."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        return cls(statistics.median(values), min(values), max(values)) if values else None


@dataclass(slots=True)
class Samples:
    """Figures by row, one set for each round, in the order of the rounds; `took_ms` has single times for a plot.

    What could not be measured is None or missing.
    """

    rows: dict[str, list[Figures]] = field(default_factory=dict)
    took_ms: dict[str, list[float]] = field(default_factory=dict)

    def add(self, row: str, figures: Figures) -> None:
        self.rows.setdefault(row, []).append(figures)

    def spread(self, row: str, figure: str) -> Spread | None:
        """A figure of a row over all rounds."""
        values = [value for each in self.rows[row] if (value := each.get(figure)) is not None]
        return Spread.of(values)

    def ratio(self, row: str, figure: str, reference: str) -> Spread | None:
        """A figure of a row as a multiple of the reference's in the same round."""
        pairs = zip(self.rows[row], self.rows.get(reference, ()), strict=False)
        ratios = [mine / its for a, b in pairs if (mine := a.get(figure)) is not None and (its := b.get(figure))]
        return Spread.of(ratios)


def by_turns(rounds: Iterable[int], measures: Mapping[str, Callable[[], Figures]]) -> Samples:
    """Measures each row once in each of the numbered `rounds`.

    Each round begins with another row, so that none is always the first.
    """
    samples = Samples({name: [] for name in measures})
    names = list(measures)
    for number in rounds:
        at = number % len(names)
        for name in names[at:] + names[:at]:
            samples.add(name, measures[name]())
    return samples


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all stay at or under. `values` is not empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
