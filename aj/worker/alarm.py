"""An alarm clock for the main thread of a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def alarm_after(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raises `error` in the main thread, once, when `seconds` have passed inside this block.

    It strikes between two steps of Python code: C code that does not return holds it off.
    """

    def strike(signum: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, strike)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
