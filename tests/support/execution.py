"""What tests of one execution share: a clock that they move, and a task that raises, what a failure says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aj.job import Outcome, Status


class Clock:
    """The monotonic clock, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def raising(error: BaseException | type[BaseException]) -> Callable[[], Any]:
    """A task without parameters that ends with `error`."""

    def call() -> Any:
        raise error

    return call


def error_of(outcome: Outcome) -> tuple[str, str]:
    """Type and detail of a failure."""
    assert outcome.status is Status.FAILED
    error = json.loads(outcome.body)
    return error["type"], error["detail"]
