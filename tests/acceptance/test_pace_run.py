"""A moment of the measurement of docs/pace.md: callers that obey, on a live deployment.

`python -m tests.pace --minutes 35` plays the same with jobs of up to ten minutes in queues of up to ten thousand.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.pace.play import measure
from tests.pace.series import Kind, Phase, Series

SERIES = Series(Kind("hundredths", 0.05, 0.2), 2, (Phase(4, is_first=True), Phase(0)))


def test_callers_that_obey_learn_of_every_end(folder: Path) -> None:
    """Each asks when it was told to, and no sooner, until it sees the end."""
    measured = measure(folder / "played", [SERIES], 7, print)
    assert {row.queue: len(seen) for row, seen in measured.items()} == {
        "nothing known at first": 6,
        "none, a worker is free": 2,
    }
    for each in (each for seen in measured.values() for each in seen):
        assert each.polls >= 1
        assert all(after.at_ms - before.at_ms >= 990 * (before.told_s or 0) for before, after in pairwise(each.seen))
