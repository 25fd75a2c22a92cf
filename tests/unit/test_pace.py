"""How late a caller that obeys Retry-After learns of the end, and how often it asks."""

from __future__ import annotations

import pytest

from aj.pace import LONGEST_S, retry_after_s

LENGTHS_S = [1, 1.5, 2, 3, 4.9, 5, 7, 9.99, 10, 11, 15, 20, 29.5, 45, 60, 90, 119, 150, 180, 240, 299, 300]


def polls_until_known(length_s: float, round_trip_s: float = 0.0) -> list[float]:
    """The ages at which an obeying caller asks, from the submission's answer to the poll that sees the end."""
    asked_s: list[float] = []
    age_s = 0.0
    while not asked_s or asked_s[-1] < length_s:
        age_s += retry_after_s(age_s) + round_trip_s
        asked_s.append(age_s)
    return asked_s


@pytest.mark.parametrize("length_s", LENGTHS_S)
@pytest.mark.parametrize("round_trip_s", [0.0, 0.05])
def test_up_to_five_minutes_the_caller_is_a_fifth_and_a_second_late_at_most(
    length_s: float, round_trip_s: float
) -> None:
    """For every length of job from 1 s to 5 min, the round trip of the last poll added."""
    late_s = polls_until_known(length_s, round_trip_s)[-1] - length_s
    assert late_s <= 0.2 * length_s + 1 + round_trip_s


def test_no_length_up_to_five_minutes_is_an_exception() -> None:
    """The same bound on a grid of tenths of a second."""
    for tenths in range(10, 3001):
        length_s = tenths / 10
        assert polls_until_known(length_s)[-1] - length_s <= 0.2 * length_s + 1


@pytest.mark.parametrize("length_s", [301, 600, 1234.5, 3600, 86_400])
def test_beyond_five_minutes_the_caller_is_a_minute_late_at_most(length_s: float) -> None:
    """However long the job runs."""
    assert polls_until_known(length_s)[-1] - length_s <= LONGEST_S


@pytest.mark.parametrize(("length_s", "most"), [(1, 1), (10, 10), (60, 21), (300, 30), (3600, 85)])
def test_the_caller_asks_few_times(length_s: float, most: int) -> None:
    """Polls grow with the logarithm of the time up to five minutes, then one a minute."""
    assert len(polls_until_known(length_s)) <= most


@pytest.mark.parametrize(
    ("age_s", "wait_s"),
    [(-5.0, 1), (0.0, 1), (0.3, 1), (9.99, 1), (10.0, 2), (14.99, 2), (15.0, 3), (299.0, 59), (300.0, 60), (1e9, 60)],
)
def test_the_wait_is_a_fifth_of_the_age_in_whole_seconds(age_s: float, wait_s: int) -> None:
    """At least 1, at most 60; a clock that stepped back gives 1 as well."""
    assert retry_after_s(age_s) == wait_s
    assert type(retry_after_s(age_s)) is int
