"""A caller that obeys asks seldom and learns of the end soon, over lengths from 0.05 s to 10 min and queues to 10,000.

By simulation, with fixed seeds. A poll is rounded to a whole second, which costs up to `ROUNDED_UP_BY_S`.
"""

from __future__ import annotations

import pytest

from aj.pace import ROUNDED_UP_BY_S, Lengths, Outlook
from tests.support.pace_plot import PICTURE, drawn
from tests.support.pace_simulation import Case, Course, held_up, simulate, wild, within, within_four

LEAST_S = (0.05, 0.3, 1.0, 3.0, 4.4, 7.0, 20.0, 60.0, 150.0)
QUEUES = [(0, 100), (1, 100), (3, 100), (10, 60), (100, 20), (1000, 6), (10_000, 1)]
WORKERS = (1, 4, 32)


def share_late(courses: list[Course], share: float) -> float:
    """How many of the jobs were learnt of later than `share` of their whole time, or than a second."""
    late = [each for each in courses if each.late_s > max(1.0, share * each.whole_s) + ROUNDED_UP_BY_S]
    return len(late) / len(courses)


def share_above(courses: list[Course], polls: int) -> float:
    return sum(each.polls > polls for each in courses) / len(courses)


@pytest.mark.parametrize("from_s", range(0, 150, 25))
def test_eight_polls_and_a_fifth_hold_for_every_length_within_a_factor_of_four(from_s: int) -> None:
    """Without exception: for each shortest length up to 150 s, and each length up to four times that."""
    for quarter in range(4 * from_s + 1, 4 * from_s + 101):
        known = Lengths(tuple(quarter / 4 * 4 ** (step / 63) for step in range(64)))
        for length_s in known.seconds[::3]:
            age_s, polls = 0.0, 0
            while polls == 0 or age_s < length_s:
                age_s += Outlook(age_s, ran_s=age_s, workers=1, running=1, queue=known, task=known).retry_after_s()
                polls += 1
            assert polls <= 8
            assert age_s - length_s <= max(1.0, 0.2 * length_s) + ROUNDED_UP_BY_S


@pytest.mark.parametrize(("ahead", "seeds"), QUEUES)
def test_where_lengths_are_alike_eight_polls_and_a_fifth_of_the_time(ahead: int, seeds: int) -> None:
    """In 99 of 100 jobs, since a job may be shorter than all that were seen; polls in every one but one of 500."""
    cases = [Case(within_four(least_s), ahead, workers) for least_s in LEAST_S for workers in WORKERS]
    courses = [simulate(case, seed) for case in cases for seed in range(seeds)]
    assert share_above(courses, 8) <= 0.002
    assert share_late(courses, 0.2) <= 0.01


@pytest.mark.parametrize(("ahead", "seeds"), [(0, 60), (10, 20), (100, 6)])
def test_a_run_that_was_held_up_now_and_then_does_not_spoil_the_others(ahead: int, seeds: int) -> None:
    """What is promised for a mixture holds for all, and for nearly all what is promised where they are alike."""
    cases = [Case(held_up(least_s), ahead, workers) for least_s in LEAST_S for workers in WORKERS]
    courses = [simulate(case, seed) for case in cases for seed in range(seeds)]
    assert share_above(courses, 8) <= 0.1
    assert share_late(courses, 0.2) <= 0.1
    assert share_above(courses, 16) <= 0.001
    assert share_late(courses, 0.5) <= 0.01


@pytest.mark.parametrize(("ahead", "seeds"), [(50, 20), (100, 20), (1000, 6), (10_000, 1)])
def test_a_long_queue_that_becomes_quicker_is_not_waited_for_too_long(ahead: int, seeds: int) -> None:
    """By a fifth: the runs that are remembered may have met a busier machine."""
    cases = [Case(within(3, least_s), ahead, workers, slower=1.2) for least_s in LEAST_S for workers in WORKERS]
    courses = [simulate(case, seed) for case in cases for seed in range(seeds)]
    assert share_above(courses, 8) == 0
    assert share_late(courses, 0.2) <= 0.02


@pytest.mark.parametrize(("ahead", "seeds"), QUEUES)
def test_where_lengths_are_wild_sixteen_polls_and_half_of_the_time(ahead: int, seeds: int) -> None:
    """Any length from 0.05 s to 10 min may follow any other. Few jobs last beyond the 710 s that 16 polls span."""
    courses = [simulate(Case(wild, ahead, workers), seed) for workers in WORKERS for seed in range(8 * seeds)]
    assert share_above(courses, 16) <= 0.01
    assert max(each.polls for each in courses) <= 18
    assert share_late(courses, 0.5) <= 0.01


@pytest.mark.parametrize(("ahead", "seeds"), QUEUES)
def test_a_task_that_never_ran_costs_sixteen_polls_and_half_of_the_time(ahead: int, seeds: int) -> None:
    """The pace of its queue is known by other tasks."""
    cases = [Case(within_four(each), ahead, workers, of_new_task=True) for each in LEAST_S for workers in WORKERS]
    courses = [simulate(case, seed) for case in cases for seed in range(seeds)]
    assert share_above(courses, 16) <= 0.01
    assert max(each.polls for each in courses) <= 17
    assert share_late(courses, 0.5) <= 0.01


@pytest.mark.parametrize(("ahead", "seeds"), QUEUES)
def test_a_queue_in_which_nothing_has_ended_yet_costs_twenty_polls(ahead: int, seeds: int) -> None:
    """Sixteen up to 710 s; beyond, one for each time and a half until its first jobs end."""
    cases = [Case(within_four(least_s), ahead, workers, remembered=0) for least_s in LEAST_S for workers in WORKERS]
    courses = [simulate(case, seed) for case in cases for seed in range(seeds)]
    assert share_above([each for each in courses if each.whole_s <= 710], 16) == 0
    assert max(each.polls for each in courses) <= 20
    assert share_late(courses, 0.5) <= 0.01


@pytest.mark.parametrize("remembered", [5, 8, 16])
def test_a_short_memory_serves_too(remembered: int) -> None:
    """Fewer runs say less of the shortest and the longest: two polls more, and half of the time, are enough."""
    cases = [Case(within_four(least_s), remembered=remembered) for least_s in LEAST_S]
    courses = [simulate(case, seed) for case in cases for seed in range(30)]
    assert share_above(courses, 10) <= 0.02
    assert share_late(courses, 0.5) <= 0.01


def test_the_picture_shows_what_is_simulated() -> None:
    """docs/pace.svg is what `python -m tests.support.pace_plot` draws."""
    assert PICTURE.read_text("utf-8") == drawn()
