"""Tasks that are given what must not be told, and end in each way. They turn on all that can be logged."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

from aj import report_progress, task

# As somebody does who looks for a fault.
logging.getLogger().setLevel(logging.DEBUG)


@task
def give(argument: str, result: str) -> str:
    report_progress(0.5)
    return result


@task
def fail(argument: str, reversed_text: str) -> None:
    """The text of the exception is no argument."""
    raise ValueError(reversed_text[::-1])


@task(retries=1, retry_delays_s=(0,))
def fail_twice(argument: str) -> None:
    raise ValueError


@task(timeout_s=1)
def take_too_long(argument: str) -> None:
    while True:
        threading.Event().wait(0.05)


@task
def die(argument: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task
def give_no_json(argument: str) -> Any:
    return {"inner": [argument, object()]}


@task
def give_too_much(argument: str) -> str:
    return argument * 100_000
