"""Tasks that tell, and change, the process in which they run."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from contextvars import ContextVar

from aj import report_progress, task

_noted: ContextVar[str] = ContextVar("noted", default="")
_held: list[bytes] = []
log = logging.getLogger("shop")


@task
def pid() -> int:
    return os.getpid()


@task
def note(text: str) -> str:
    """Gives what the job before has noted in its context."""
    before = _noted.get()
    _noted.set(text)
    return before


@task
def fork_and_return() -> int:
    """Both processes come back from here, and have something to report."""
    report_progress(0.1)
    os.fork()
    report_progress(0.2)
    return os.getpid()


@task
def grow(mebibytes: int) -> int:
    _held.append(b"x" * (mebibytes * 2**20))
    return os.getpid()


@task
def give_much(mebibytes: int) -> str:
    return "x" * (mebibytes * 2**20)


@task
def close_all_files() -> None:
    """The line to the worker too."""
    os.closerange(3, 256)


@task
def close_all_files_and_go_on() -> None:
    os.closerange(3, 256)
    threading.Event().wait(60)


@task
def say(text: str) -> int:
    """To the log, from the thread of the task and from one of its own."""
    log.warning("%s", text)
    other = threading.Thread(target=log.warning, args=("%s, another thread", text))
    other.start()
    other.join()
    return os.getpid()


@task
def break_signals() -> int:
    """Leaves an alarm that strikes later, and handlers of its own."""
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(1)
    return os.getpid()


@task(timeout_s=1)
def hang() -> None:
    with contextlib.suppress(Exception):
        threading.Event().wait(60)


@task
def report_and_die() -> None:
    report_progress(0.5, "half")
    os.kill(os.getpid(), signal.SIGKILL)
