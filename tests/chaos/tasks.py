"""The tasks of the load. Each run leaves its traces in a file, so that an auditor can count runs without asking us.

A trace is one line, written by one `write` to a descriptor in append mode: no kill tears it. The lock of a run is
held by the kernel for this process alone and ends with it: who does not get it runs beside another run.
"""

from __future__ import annotations

import fcntl
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aj import TaskError, task

RUNS, LOCKS = "runs.log", "runs.lock"
FOLDER = "CHAOS_FOLDER"
RETRIES = 3


def _append(word: str, ordinal: int) -> None:
    fd = os.open(Path(os.environ[FOLDER]) / RUNS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, f"{word} {ordinal} {os.getpid()}\n".encode())
    finally:
        os.close(fd)


@contextmanager
def _traced(ordinal: int) -> Iterator[None]:
    """Notes the start and the end of a run of job number `ordinal`."""
    fd = os.open(Path(os.environ[FOLDER]) / LOCKS, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, ordinal)
        except OSError:
            _append("overlap", ordinal)
        _append("start", ordinal)
        yield
        _append("end", ordinal)
    finally:
        os.close(fd)


@task
def quick(ordinal: int) -> int:
    with _traced(ordinal):
        return ordinal


@task
def slow(ordinal: int, seconds: float) -> int:
    with _traced(ordinal):
        threading.Event().wait(seconds)
        return ordinal


@task
def failing(ordinal: int) -> None:
    with _traced(ordinal):
        raise TaskError("as it should")


@task(retries=RETRIES, retry_delays_s=(0.2, 0.5, 1))
def flaky(ordinal: int) -> int:
    """Fails in every second run or so, and runs again."""
    with _traced(ordinal):
        if random.random() < 0.5:
            raise TaskError("this time")
        return ordinal


@task(retries=RETRIES, retry_delays_s=(0, 0.5, 1))
def steady(ordinal: int, seconds: float) -> int:
    """Runs again only where it was killed."""
    with _traced(ordinal):
        threading.Event().wait(seconds)
        return ordinal
