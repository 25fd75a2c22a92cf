"""Waiting for a condition with a deadline; no test sleeps and hopes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(look: Callable[[], Value | None], within_s: float = 30.0, what: str = "the condition") -> Value:
    """The first true value that `look` gives; fails the test when there is none within `within_s` seconds."""
    deadline_s = time.monotonic() + within_s
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() > deadline_s:
            raise AssertionError(f"{what} did not come true within {within_s} s; last seen: {value!r}")
        threading.Event().wait(0.01)
