"""Waiting for a condition, and children that do not outlive their parent.

This file starts nothing itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

from aj import clock

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def pause(pause_s: float) -> None:
    """Lets `pause_s` seconds go by; for the loops that have nothing to select on."""
    threading.Event().wait(pause_s)


def wait_for(condition: Callable[[], bool], wait_s: float, step_s: float = 0.01) -> bool:
    """Whether `condition` came true within `wait_s` seconds; it is asked every `step_s`, and at least once."""
    deadline_s = clock.monotonic_s() + wait_s
    while not condition():
        if clock.monotonic_s() >= deadline_s:
            return False
        pause(step_s)
    return True


def ends_with_parent() -> Callable[[], None] | None:
    """A `preexec_fn` for a child that gets SIGTERM when the process that started it dies, however it dies.

    Linux only; None elsewhere, where such a child has to be found and ended by the next start.
    The child must be started by the parent's main thread, since the signal follows the thread.

    Source: prctl(2), PR_SET_PDEATHSIG.
    """
    if sys.platform != "linux":
        return None
    parent_pid = os.getpid()

    def apply() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent_pid:  # it died before the call: the signal would never come
            os._exit(1)

    return apply
