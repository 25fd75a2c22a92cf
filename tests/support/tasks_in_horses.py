"""Tasks that tell, and change, the process in which they run."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import logging
import os
import signal
import sys
import threading
import time
from contextvars import ContextVar
from typing import Any

from aj import report_progress, task
from aj.worker.line import Line

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


def _storm(mark: str, is_over: threading.Event) -> None:
    while not is_over.is_set():
        report_progress(1, mark * 150)


_storm_is_over = threading.Event()


@task
def leave_threads_that_report(mark: str) -> int:
    """As quickly as they can, and after this job's end."""
    for _ in range(3):
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(_storm, mark, _storm_is_over), daemon=True).start()
    return os.getpid()


@task
def end_the_threads() -> int:
    _storm_is_over.set()
    return os.getpid()


@task
def report_from_threads() -> str:
    """All at once, and the task among them."""
    is_over = threading.Event()
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(_storm, "x", is_over), daemon=True)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in range(200):
        report_progress(1, "y" * 150)
    is_over.set()
    for thread in threads:
        thread.join()
    return "z" * 900_000


@task(timeout_s=30)
def write_into_the_line(text: str) -> None:
    """A task can reach every object of its process."""
    for each in gc.get_objects():
        if isinstance(each, Line) and each._end.fileno() >= 0:
            os.write(each._end.fileno(), bytes.fromhex(text))
    threading.Event().wait(60)


class _Unflushable:
    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        raise self._error


@task
def replace_streams(stream: str) -> int:
    streams: dict[str, Any] = {"none": None, "raises": _Unflushable(RuntimeError), "exits": _Unflushable(SystemExit)}
    sys.stdout = sys.stderr = streams[stream]
    return os.getpid()


@task
def leave_the_group_and_hold_off_signals() -> None:
    os.setpgid(0, os.getpgid(os.getppid()))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    threading.Event().wait(60)


@task
def tell_bearings() -> list[Any]:
    umask = os.umask(0o077)
    os.umask(umask)
    return [os.getcwd(), umask, sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))]


@task
def lose_bearings() -> int:
    os.chdir("/")
    os.umask(0o707)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGUSR1])
    return os.getpid()


@task
def leave_a_timer(timer: str) -> int:
    signal.setitimer(getattr(signal, timer), 0.1)
    return os.getpid()


@task
def burn(cpu_s: float) -> int:
    ends_at_s = time.process_time() + cpu_s
    while time.process_time() < ends_at_s:
        pass
    return os.getpid()


@task(timeout_s=1)
def hold_off_the_alarm() -> int:
    """It waits until the alarm would have struck, and returns with it blocked."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while signal.SIGALRM not in signal.sigpending():
        threading.Event().wait(0.02)
    return os.getpid()
