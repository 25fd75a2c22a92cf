"""The alarm clock of the main thread."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from aj.execute import TimedOut
from aj.worker.alarm import alarm_after


@pytest.fixture(autouse=True)
def handler() -> Iterator[list[int]]:
    """A handler that stood before, and the alarms it saw; at the end it stands again and no alarm is set."""
    seen: list[int] = []

    def before(signum: int, frame: object) -> None:
        seen.append(signum)

    original = signal.signal(signal.SIGALRM, before)
    yield seen
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    signal.signal(signal.SIGALRM, original)
    assert seen == []


def busy(seconds: float) -> None:
    """Python code that runs for so long."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        pass


def test_it_strikes_when_the_time_is_over() -> None:
    """Between two steps of Python code, soon after."""
    before_s = time.monotonic()
    with pytest.raises(TimedOut), alarm_after(0.05, TimedOut):
        busy(10)
    assert 0.05 <= time.monotonic() - before_s < 5


def test_it_strikes_a_thread_that_waits() -> None:
    """A wait of Python's is woken by the signal."""
    before_s = time.monotonic()
    with pytest.raises(TimedOut), alarm_after(0.05, TimedOut):
        threading.Event().wait(10)
    assert time.monotonic() - before_s < 5


def test_it_does_not_strike_a_block_that_ends_in_time() -> None:
    """Nor what comes after it."""
    with alarm_after(0.05, TimedOut):
        pass
    busy(0.1)


def test_it_strikes_once() -> None:
    """Who swallows it is not interrupted again."""
    struck = 0
    with alarm_after(0.02, TimedOut):
        try:
            busy(10)
        except TimedOut:
            struck += 1
        busy(0.1)
    assert struck == 1


def test_it_raises_what_it_was_given() -> None:
    """Any exception."""
    with pytest.raises(KeyError), alarm_after(0.02, KeyError):
        busy(10)


def test_it_passes_a_task_that_catches_exception() -> None:
    """Since `TimedOut` is none."""

    def stubborn() -> None:
        try:
            busy(10)
        except Exception:
            busy(10)

    with pytest.raises(TimedOut), alarm_after(0.02, TimedOut):
        stubborn()


def test_an_error_of_the_block_comes_through_and_disarms_it() -> None:
    """The handler and the timer are put back on every way out."""
    with pytest.raises(ZeroDivisionError), alarm_after(0.05, TimedOut):
        raise ZeroDivisionError
    busy(0.1)


def test_it_can_be_set_again_and_again() -> None:
    """One after the other, as jobs come."""
    for _ in range(3):
        with pytest.raises(TimedOut), alarm_after(0.01, TimedOut):
            busy(10)
    with alarm_after(10, TimedOut):
        assert 9 < signal.getitimer(signal.ITIMER_REAL)[0] <= 10


def test_a_time_below_zero_is_refused() -> None:
    """By the system; nothing is left armed, and the block does not run."""
    ran = False
    with pytest.raises(signal.ItimerError), alarm_after(-1, TimedOut):
        ran = True
    assert not ran


def test_it_belongs_to_the_main_thread() -> None:
    """As signals do; elsewhere it is an error and not an alarm that never comes."""
    errors: list[BaseException] = []

    def elsewhere() -> None:
        try:
            with alarm_after(1, TimedOut):
                pass
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(errors) == 1
