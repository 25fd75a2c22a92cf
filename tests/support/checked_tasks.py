"""What an API under check offers: a task that is quick, one that takes its time, and one that fails."""

from __future__ import annotations

import threading

from aj import TaskError, task


@task
def square(n: int) -> int:
    return n * n


@task
def rest(seconds: float) -> str:
    threading.Event().wait(seconds)
    return "rested"


@task
def fail() -> None:
    raise TaskError("on purpose")


@task(result_ttl_s=1)
def forget_soon() -> None:
    pass
