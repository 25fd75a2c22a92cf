"""Waiting for a condition, where there is nothing to select on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from aj import clock


def pause(pause_s: float) -> None:
    """Lets `pause_s` seconds go by."""
    threading.Event().wait(pause_s)


def wait_for(condition: Callable[[], bool], wait_s: float, step_s: float = 0.01) -> bool:
    """Whether `condition` came true within `wait_s` seconds; it is asked every `step_s`, and at least once."""
    deadline_s = clock.monotonic_s() + wait_s
    while not condition():
        if clock.monotonic_s() >= deadline_s:
            return False
        pause(step_s)
    return True
