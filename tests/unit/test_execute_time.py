"""What the clock has to say about how a call ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import aj.execute
from aj import TaskError
from aj.execute import Limits, TimedOut, execute
from aj.job import ErrorType, Outcome, Status
from tests.support.execution import Clock, error_of, raising

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(aj.execute, "monotonic_s", made)
    return made


def run(call: Callable[[], Any]) -> Outcome:
    """The outcome of a call that begins at 1000 s and may take 5 s."""
    return execute(call, Limits(timeout_s=5, max_result_bytes=100), 1005.0, lambda progress: None, "job 1")


def test_a_task_whose_time_is_over_timed_out(clock: Clock) -> None:
    """The alarm's exception says so, whatever the clock says."""
    assert error_of(run(raising(TimedOut))) == (
        ErrorType.TIMED_OUT,
        "The task may take 5 s and did not end in that time.",
    )


def moved(clock: Clock, to_s: float, then: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> Any:
        clock.now_s = to_s
        return then()

    return call


@pytest.mark.parametrize(
    ("ends_s", "status"),
    [(1004.999, Status.SUCCEEDED), (1005.0, Status.FAILED), (1005.001, Status.FAILED), (9999.0, Status.FAILED)],
)
def test_a_result_at_or_after_the_deadline_is_timed_out(clock: Clock, ends_s: float, status: Status) -> None:
    """Where the task held the alarm off."""
    outcome = run(moved(clock, ends_s, lambda: 25))
    assert outcome.status is status
    assert status is Status.SUCCEEDED or error_of(outcome)[0] == ErrorType.TIMED_OUT


@pytest.mark.parametrize("error", [ValueError(SECRET), TaskError("shown"), SystemExit(0), KeyboardInterrupt()])
def test_an_exception_after_the_deadline_is_timed_out(clock: Clock, error: BaseException) -> None:
    """It is most often what the alarm was turned into on its way."""
    assert error_of(run(moved(clock, 1005.0, raising(error))))[0] == ErrorType.TIMED_OUT
    assert error_of(run(moved(clock, 1004.9, raising(error))))[0] == ErrorType.TASK_FAILED


def test_a_result_that_is_no_json_is_timed_out_after_the_deadline(clock: Clock) -> None:
    """Late is late."""
    assert error_of(run(moved(clock, 1005.0, object)))[0] == ErrorType.TIMED_OUT


def test_a_result_whose_writing_takes_too_long_is_kept(clock: Clock) -> None:
    """The task ended in time; the clock is asked when it does."""

    class Slow(dict[str, int]):
        def items(self) -> Any:
            clock.now_s = 2000.0
            return super().items()

    assert run(lambda: Slow(a=1)) == Outcome.succeeded(b'{"a": 1}')
    assert clock.now_s == 2000.0


def test_a_task_that_catches_exception_does_not_catch_its_timeout() -> None:
    """The alarm's exception is none."""

    def call() -> str:
        try:
            raise TimedOut
        except Exception:
            return "swallowed"

    assert error_of(run(call))[0] == ErrorType.TIMED_OUT


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome.lost(), ErrorType.LOST),
        (Outcome.cancelled(), ErrorType.CANCELLED),
        (Outcome.timed_out(0.5), ErrorType.TIMED_OUT),
    ],
)
def test_ends_from_outside_have_their_outcomes(outcome: Outcome, kind: ErrorType) -> None:
    """With a sentence each."""
    got, detail = error_of(outcome)
    assert got == kind
    assert detail.endswith(".")
