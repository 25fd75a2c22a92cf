"""The tasks that a fresh deployment offers."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import aj.progress
import aj.tasks
from aj.errors import Invalid
from aj.progress import reporting_to
from aj.registry import Registry
from aj.tasks import countdown, square

REGISTRY = Registry.load(("aj.tasks",))


@pytest.fixture
def waits_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that a task makes, which take no time here but move the clock of the reports."""
    made: list[float] = []

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            made.append(timeout)
            return False

    monkeypatch.setattr(aj.tasks, "threading", SimpleNamespace(Event=Event))
    monkeypatch.setattr(aj.progress, "monotonic_s", lambda: sum(made))
    return made


def test_square_is_the_default_task() -> None:
    """So that `{"n": 5}` is a submission."""
    assert [each.name for each in REGISTRY] == ["square", "countdown"]
    assert REGISTRY.default.function is square


@pytest.mark.parametrize(("n", "result"), [(5, 25), (0, 0), (-3, 9), (10**30, 10**60)])
def test_square_gives_the_square(n: int, result: int) -> None:
    """Of integers of any size."""
    assert square(n) == result


def test_countdown_waits_a_second_for_each(waits_s: list[float]) -> None:
    """And ends with a word."""
    assert countdown(3) == "lift-off"
    assert waits_s == [1, 1, 1]


def test_countdown_takes_ten_seconds_unless_told_otherwise(waits_s: list[float]) -> None:
    """Long enough to be watched."""
    countdown()
    assert sum(waits_s) == 10
    task = REGISTRY.get("countdown")
    assert task is not None
    assert task.validate({}) == {"seconds": 10}


def test_countdown_says_how_far_it_is(waits_s: list[float]) -> None:
    """From 0 to 1, once a second, with the seconds that are left."""
    sent: list[dict[str, Any]] = []
    with reporting_to(lambda progress: sent.append(json.loads(progress))):
        countdown(4)
    assert [each["fraction"] for each in sent] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [each["message"] for each in sent] == ["4 s left", "3 s left", "2 s left", "1 s left", "0 s left"]


@pytest.mark.parametrize("seconds", [0, -1, 3601, "10", 1.0, True, None])
def test_countdown_is_bounded(seconds: Any) -> None:
    """From a second to an hour."""
    task = REGISTRY.get("countdown")
    assert task is not None
    with pytest.raises(Invalid) as caught:
        task.validate({"seconds": seconds})
    assert [each.pointer for each in caught.value.errors] == ["#/seconds"]
