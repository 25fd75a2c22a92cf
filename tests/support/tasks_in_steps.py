"""A task that a test leads step by step."""

from __future__ import annotations

import threading
from pathlib import Path

from aj import report_progress, task


@task(timeout_s=30)
def go_in_steps(folder: str, steps: int) -> int:
    """Reports each step, and takes the next one when the test has left a file with its number.

    It reports again and again, since a report that comes quickly after another is held back.
    """
    for step in range(1, steps + 1):
        while not (Path(folder) / str(step)).exists():
            report_progress(step / 10)
            threading.Event().wait(0.01)
    return steps
