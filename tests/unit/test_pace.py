"""What a caller is told of one moment: when to ask again, its place, and when the end is expected."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aj.pace import FEWEST, KEPT, NOTHING_KNOWN, Lengths, Outlook, packed

TENS = Lengths((10.0,) * KEPT)
SPREAD = Lengths(tuple(10.0 * 4 ** (step / 63) for step in range(64)))
WILD = Lengths((0.05, 600.0) * 32)
RUNNING = Outlook(ran_s=0.0, workers=1, running=1)
WAITING = Outlook(ahead=0, workers=1)


@pytest.mark.parametrize("length_s", [0.001, 0.05, 1.0, 9.99, 600.0, 86_400.0])
def test_a_length_is_remembered_to_a_thousandth(length_s: float) -> None:
    """Two bytes from a millisecond to a day and far beyond."""
    text = packed(length_s)
    assert len(text) == 2
    assert Lengths.unpacked(text).seconds[0] == pytest.approx(length_s, rel=0.001)


def test_lengths_out_of_range_are_remembered_as_the_nearest() -> None:
    """A run that took no time, and one that took for ever."""
    assert packed(0.0) == packed(-1.0) == packed(0.001) == b"\0\0"
    assert packed(1e300) == b"\xff\xff"


def test_half_a_length_is_passed_over() -> None:
    """What is broken in the store breaks no request."""
    assert Lengths.unpacked(b"") == Lengths()
    assert len(Lengths.unpacked(packed(5.0) + b"x").seconds) == 1


@pytest.mark.parametrize(
    ("seconds", "are_alike"),
    [
        ((10.0,) * 5, True),
        ((10.0,) * 4, False),
        ((10.0, 40.0, 20.0, 20.0, 20.0), True),
        ((10.0, 41.0, 20.0, 20.0, 20.0), False),
        ((10.0, *(20.0,) * 8, 41.0), True),
        ((10.0, *(20.0,) * 8, 641.0), False),
        ((10.0, *(20.0,) * 7, 41.0, 41.0), False),
        ((2.4, *(10.0,) * 9), False),
        ((0.01, 0.02, 0.5, 3.9, 1.0), True),
        ((), False),
    ],
)
def test_lengths_are_alike_within_a_factor_of_four(seconds: tuple[float, ...], are_alike: bool) -> None:
    """At least five of them, and nine of ten; below a second all are alike, since nobody can ask sooner."""
    assert Lengths(seconds).are_alike is are_alike


def test_where_nothing_is_known_the_wait_is_half_of_the_age() -> None:
    """In whole seconds, at least one."""
    waits = [replace(NOTHING_KNOWN, age_s=age_s).retry_after_s() for age_s in (-5.0, 0.0, 1.0, 2.0, 3.0, 10.0, 100.0)]
    assert waits == [1, 1, 1, 1, 2, 5, 50]
    assert all(type(each) is int for each in waits)


def test_a_job_that_has_just_started_is_waited_for_until_its_least_plausible_end() -> None:
    """And a fifth of that time more, which is what it may be late."""
    assert replace(RUNNING, task=TENS).retry_after_s() == 12
    assert replace(RUNNING, task=SPREAD).retry_after_s() == 12


def test_a_job_that_could_end_at_any_time_is_waited_for_a_fifth_of_its_age() -> None:
    """Its age counts from the submission, so that time in the queue makes the waits longer."""
    assert replace(RUNNING, age_s=20.0, ran_s=20.0, task=SPREAD).retry_after_s() == 4
    assert replace(RUNNING, age_s=100.0, ran_s=20.0, task=SPREAD).retry_after_s() == 20


def test_a_job_that_runs_a_little_longer_than_all_before_is_still_like_them() -> None:
    """By as much as the next run may well be longer."""
    assert replace(RUNNING, age_s=41.0, ran_s=41.0, task=SPREAD).retry_after_s() == 8


def test_a_job_that_runs_longer_than_that_is_one_of_which_nothing_is_known() -> None:
    """Half of its age, as where nothing is known."""
    assert replace(RUNNING, age_s=60.0, ran_s=60.0, task=SPREAD).retry_after_s() == 30
    assert replace(RUNNING, age_s=60.0, ran_s=60.0, task=WILD).retry_after_s() == 30


def test_who_asked_before_anything_was_known_goes_on_in_wide_steps() -> None:
    """Its polls are spent: sixteen have to reach the end. How long it takes at the least counts at once."""
    new = replace(RUNNING, known_at_first=FEWEST - 1, task=TENS)
    assert new.retry_after_s() == 15
    assert replace(new, age_s=10.0, ran_s=10.0).retry_after_s() == 5
    assert replace(new, known_at_first=FEWEST).retry_after_s() == 12


def test_the_wait_grows_with_the_place_and_shrinks_with_the_workers() -> None:
    """Ten jobs of ten seconds are a hundred seconds of one worker, and of ten workers nobody knows."""
    one = replace(WAITING, ahead=10, running=1, queue=TENS, task=TENS)
    ten = replace(one, workers=10, running=10)
    assert one.retry_after_s() == 132
    assert ten.retry_after_s() == 19


def test_of_many_jobs_ahead_those_that_are_far_count_less() -> None:
    """The pace may have changed until it is their turn: a hundred jobs of ten seconds may get done in 752 s."""
    assert TENS.least_sum_s(16, workers=1) == pytest.approx(160)
    assert TENS.least_sum_s(100, workers=1) == pytest.approx(160 + 0.7 * 840)


def test_a_delayed_attempt_is_not_asked_for_before_it_is_due() -> None:
    """It stands in no queue meanwhile, so it has no place in one."""
    delayed = Outlook(age_s=5.0, due_in_s=600.0, workers=1, queue=TENS, task=TENS)
    assert delayed.position is None
    assert delayed.retry_after_s() >= 610
    assert delayed.eta_s == 610


def test_nobody_is_sent_away_for_longer_than_the_result_may_live() -> None:
    """How late the end may be learnt of is bounded; what is left until the least plausible end is not."""
    old = replace(NOTHING_KNOWN, age_s=1e6)
    assert old.retry_after_s() == 500_000
    assert old.retry_after_s(most_late_s=3600) == 3600
    assert replace(RUNNING, task=TENS).retry_after_s(most_late_s=0.5) == 11


@pytest.mark.parametrize(
    ("outlook", "position"),
    [(NOTHING_KNOWN, None), (WAITING, 1), (replace(WAITING, ahead=41), 42), (replace(RUNNING, ahead=3), None)],
)
def test_only_a_job_in_a_queue_has_a_place(outlook: Outlook, position: int | None) -> None:
    """One is the next."""
    assert outlook.position == position


@pytest.mark.parametrize(
    ("outlook", "eta_s"),
    [
        (NOTHING_KNOWN, None),
        (replace(WAITING, task=TENS), 10),
        (replace(WAITING, running=1, task=TENS), None),
        (replace(WAITING, running=1, task=TENS, queue=TENS), 15),
        (replace(WAITING, workers=0, task=TENS, queue=TENS), None),
        (replace(WAITING, ahead=9, workers=5, running=5, task=TENS, queue=TENS), 29),
        (replace(RUNNING, ran_s=4.0, task=TENS), 6),
        (replace(RUNNING, ran_s=9.9, task=TENS), 1),
        (replace(RUNNING, ran_s=11.0, task=TENS), None),
        (replace(RUNNING, ran_s=1.0, task=WILD), 599),
        (replace(RUNNING, task=Lengths((10.0,) * 4)), None),
    ],
)
def test_the_end_is_expected_where_something_is_known(outlook: Outlook, eta_s: int | None) -> None:
    """Whole seconds, at least one; by the middle one of the runs that took longer than this one has already."""
    assert outlook.eta_s == eta_s


lengths = st.lists(st.floats(0.001, 1e7), max_size=KEPT).map(lambda seconds: Lengths(tuple(seconds)))
times = st.floats(0, 1e8)


@given(
    st.builds(
        Outlook,
        age_s=st.floats(-1e3, 1e8),
        ran_s=st.none() | times,
        ahead=st.none() | st.integers(0, 10**9),
        due_in_s=times,
        workers=st.integers(0, 10_000),
        running=st.integers(0, 10_000),
        queue=lengths,
        task=lengths,
    )
)
def test_whatever_is_known_the_answers_are_whole_seconds_of_at_least_one(outlook: Outlook) -> None:
    """No count that is off, and no history, breaks a request."""
    assert type(outlook.retry_after_s()) is int
    assert 1 <= outlook.retry_after_s(most_late_s=60) <= outlook.retry_after_s() < math.inf
    assert outlook.eta_s is None or outlook.eta_s >= 1
    assert outlook.position is None or outlook.position >= 1
