"""Tasks whose course a test sets while somebody looks at them."""

from __future__ import annotations

import threading
from pathlib import Path

from aj import TaskError, report_progress, task


@task
def square(n: int) -> int:
    """The square of n."""
    return n * n


@task
def two_steps(path: str) -> str:
    """Tells of its first step, and ends when the file is there."""
    report_progress(0.4, "the first of two steps is done")
    while not Path(path).exists():
        threading.Event().wait(0.01)
    return "both steps"


@task
def reconcile_the_ledgers_of_all_subsidiaries(path: str) -> str:
    """A name and a message that are as long as those of ordinary tasks may be, and of one word each."""
    report_progress(0.4, "https://files.example.com/exports/2026/11/30/ledger-of-subsidiaries.csv")
    while not Path(path).exists():
        threading.Event().wait(0.01)
    return path


@task
def refuse(text: str) -> None:
    raise TaskError(text)
