"""The tasks that a fresh deployment offers: one quick, one long enough to be watched."""

from __future__ import annotations

import threading
from typing import Annotated

from pydantic import Field

from aj.progress import report_progress
from aj.registry import task


@task
def square(n: int) -> int:
    """The square of n."""
    return n * n


@task
def countdown(seconds: Annotated[int, Field(ge=1, le=3600)] = 10) -> str:
    """Counts down from `seconds`, reporting progress every second."""
    pause = threading.Event()
    for passed in range(seconds):
        report_progress(passed / seconds, f"{seconds - passed} s left")
        pause.wait(1)
    report_progress(1, "0 s left")
    return "lift-off"
