"""What is played fits into its time, and what is beyond a promise is told."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.pace.callers import Learnt, Poll
from tests.pace.report import beyond, figures, table
from tests.pace.series import ALL, Known, Row, planned

ROW = Row("5 to 20 s", Known.ALIKE, 100)
FIRST, SECOND = Poll(1000, 0.01, "accepted", None, 8), Poll(9_000, 0.01, "queued", 3, 4)
LAST = Poll(13_000, 0.01, "succeeded", None, None)
SEEN = Learnt("a job", whole_s=10.0, ran_s=5.0, late_s=2.0, seen=(FIRST, SECOND, LAST))


@pytest.mark.parametrize("minutes", [0.3, 2, 10])
def test_what_is_played_ends_in_time(minutes: float) -> None:
    """By estimate; a series of which not even the first phase fits is left out."""
    for each in planned(minutes):
        assert each.phases[0].is_first
        assert sum(phase.rounds * each.round_s(phase) for phase in each.phases) <= 60 * minutes
    assert 0 < len(planned(minutes)) < len(ALL)


def test_the_long_form_plays_everything() -> None:
    """In 35 minutes."""
    assert planned(35) == ALL


def test_every_long_queue_is_watched_from_its_first_job_to_its_last() -> None:
    """By those that start at once, the last, and a bounded number in between."""
    for each in ALL:
        for phase in each.phases:
            jobs = len(each.draws(phase, Random(1)))
            watched = each.watched(phase)
            assert watched <= set(range(jobs))
            assert 0 in watched
            assert max(watched) >= jobs - 2
            assert len(watched) <= each.workers + 100


def test_who_was_told_in_time_is_counted_and_not_mentioned() -> None:
    """One row for what is counted together: middle and most."""
    line = table({ROW: [SEEN, replace(SEEN, late_s=0.5)]}).splitlines()[-1]
    assert line.startswith("| 5 to 20 s | 100 | 2 | 8, 20 % | 2, 2 | 1.2 s, 2.0 s | 12 %, 20 % | none |")
    assert beyond({ROW: [SEEN]}) == []


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (replace(SEEN, late_s=2.7), "1 late"),
        (replace(SEEN, late_s=2.7, seen=(FIRST, SECOND, replace(LAST, took_s=0.2))), "1 late because of slow answers"),
        (
            replace(SEEN, late_s=2.9, seen=(FIRST, replace(SECOND, at_ms=10_400), LAST)),
            "1 late because of slow answers",
        ),
        (replace(SEEN, seen=(FIRST, *[SECOND] * 8, LAST)), "1 polls"),
        (replace(SEEN, late_s=3.0, seen=(FIRST, *[SECOND] * 8, LAST)), "1 polls, 1 late"),
    ],
)
def test_what_is_beyond_the_promise_is_told(seen: Learnt, said: str) -> None:
    """And whether the rule was wrong or the machine slow; each job with its whole story."""
    assert f"| {said} |" in table({ROW: [seen]})
    (story,) = beyond({ROW: [seen]})
    assert "queued at 3 (took 0.01 s), 4 s told" in story


def test_who_knows_nothing_needs_more_polls_beyond_710_s() -> None:
    """Sixteen lead there in steps of one and a half, as docs/pace.md says."""
    row = Row("150 to 600 s", Known.NOTHING, 32)
    seen = replace(SEEN, whole_s=800.0, seen=(FIRST, *[SECOND] * 16, LAST))
    assert "| 1 polls beyond 710 s |" in table({row: [seen]})
    assert "| 1 polls |" in table({row: [replace(seen, whole_s=700.0)]})


def test_fixed_intervals_are_computed_from_the_same_jobs() -> None:
    """Ten seconds are ten polls of one second, two of five, and with thirty twenty seconds too late."""
    assert table({ROW: [SEEN]}).endswith("| 10, 10; 0 % late | 2, 2; 0 % late | 1, 1; 100 % late |")


def test_each_job_is_a_line_of_the_figures() -> None:
    """With what was known of it, which chooses its colour."""
    assert figures({ROW: [SEEN]}) == "known,ahead,whole_s,polls,late_s\nalike,100,10.00,2,2.00\n"
