"""When a webhook is tried again."""

from __future__ import annotations

import pytest

from aj.schedule import JITTER, RETRY_AFTER_CAP_S, delay_before_s

SCHEDULE_S = (0.0, 5.0, 30.0, 120.0)


def middle(low: float, high: float) -> float:
    return (low + high) / 2


@pytest.mark.parametrize(("attempt", "delay_s"), [(1, 0.0), (2, 5.0), (3, 30.0), (4, 120.0)])
def test_each_attempt_has_its_delay(attempt: int, delay_s: float) -> None:
    """Attempts count from 1."""
    assert delay_before_s(attempt, SCHEDULE_S, uniform=middle) == delay_s


@pytest.mark.parametrize("retry_after_s", [None, 60.0])
def test_after_the_last_attempt_there_is_none(retry_after_s: float | None) -> None:
    """Not even where the receiver asks for one."""
    assert delay_before_s(5, SCHEDULE_S, retry_after_s) is None
    assert delay_before_s(1, ()) is None


def test_the_delay_is_moved_by_up_to_a_fifth_either_way() -> None:
    """The ends of the jitter, as they are asked of the source of chance."""
    assert delay_before_s(3, SCHEDULE_S, uniform=lambda low, high: low) == 30.0 * (1 - JITTER)
    assert delay_before_s(3, SCHEDULE_S, uniform=lambda low, high: high) == 30.0 * (1 + JITTER)


def test_deliveries_that_failed_together_do_not_come_back_together() -> None:
    """With real chance, 200 delays spread over most of the jitter's width and never leave it."""
    delays_s = [delay for _ in range(200) if (delay := delay_before_s(4, SCHEDULE_S)) is not None]
    assert len(delays_s) == 200
    assert 96.0 <= min(delays_s) < 106.0
    assert 134.0 < max(delays_s) <= 144.0


@pytest.mark.parametrize(
    ("retry_after_s", "delay_s"),
    [
        (None, 30.0),
        (0.0, 30.0),
        (-5.0, 30.0),
        (29.0, 30.0),
        (31.0, 31.0),
        (RETRY_AFTER_CAP_S, RETRY_AFTER_CAP_S),
        (RETRY_AFTER_CAP_S + 1, RETRY_AFTER_CAP_S),
        (float("inf"), RETRY_AFTER_CAP_S),
    ],
)
def test_retry_after_only_lengthens_and_by_a_day_at_most(retry_after_s: float | None, delay_s: float) -> None:
    """A receiver cannot hurry us, and cannot put us off for ever."""
    assert delay_before_s(3, SCHEDULE_S, retry_after_s, uniform=middle) == delay_s


def test_the_cap_does_not_shorten_a_schedule_of_our_own() -> None:
    """An operator may wait longer than a receiver may ask."""
    assert delay_before_s(1, (200_000.0,), 5.0, uniform=middle) == 200_000.0
