"""A work-horse: a process that runs one job after another for its worker, and tells it how each ended.

It has no part in the store: what it has to say goes over a line, and its worker writes it. So a task can break its
process in every way there is, and nothing but its own job is touched. This file holds the worker's side; what the
process does stands in `stall`.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import select
import signal
import weakref
from collections.abc import Callable
from typing import NoReturn

from aj.job import Outcome
from aj.worker.line import Line
from aj.worker.message import ENDED, ORDER, PROGRESS, Order, Progress, Report

log = logging.getLogger("aj.worker")

# With its end of the line, a byte that it sets to 1 when it takes up an order, and its worker's pid.
Life = Callable[[Line, mmap.mmap, int], NoReturn]

GOES_WITHIN_S = 1.0
FIRST_NAP_S = 0.001


class WorkHorse:
    """A child process that is there until it is dismissed, or dies.

    `live` is what it does; it never returns. `beside` is one that lives meanwhile, whose line it must not hold.
    """

    def __init__(self, live: Life, beside: WorkHorse | None = None) -> None:
        self._line, theirs = Line.pair()
        # A byte that both see: a message would wake its worker for nothing, which costs a job 50 µs.
        self._begun = mmap.mmap(-1, 1)
        self.runs, self._is_fit, self._nap_s = 0, True, FIRST_NAP_S
        worker_pid = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._line.close()
            if beside is not None:
                beside._line.close()
            live(theirs, self._begun, worker_pid)
        theirs.close()
        with contextlib.suppress(OSError):  # it does so itself; nobody may end its group while that is still ours
            os.setpgid(self.pid, self.pid)
        self._end = weakref.finalize(self, _end, self.pid, worker_pid)

    @property
    def has_begun(self) -> bool:
        """Whether it has taken up its last order: what it was ordered and did not begin, another one may run."""
        return self._begun[0] == 1

    @property
    def lives(self) -> bool:
        if self._end.alive and os.waitpid(self.pid, os.WNOHANG)[0]:
            self._end.detach()
        return self._end.alive

    def is_fit(self, most_runs: int) -> bool:
        """Whether it can be given another job."""
        return self._is_fit and self.runs < most_runs and self.lives

    def order(self, order: Order) -> None:
        self.runs += 1
        self._begun[0] = 0
        self._line.say(ORDER, order.packed())

    def outcome(self, at_most_s: float, report_progress: Callable[[bytes], None]) -> Outcome | None:
        """How its job ended. Waits `at_most_s` seconds at most; None where there is nothing to be told yet."""
        if not self._line.is_open:
            # Its end is heard a moment before its death can be seen. But a task may close what it inherits, and run on.
            select.select([], [], [], min(self._nap_s, at_most_s))
            self._nap_s *= 2
        try:
            return self._heard(at_most_s, report_progress)
        except ValueError as error:
            log.error("a work-horse is ended: what it says cannot be understood (%s)", error)
            self.kill()
            self._line.close()
            return None

    def _heard(self, at_most_s: float, report_progress: Callable[[bytes], None]) -> Outcome | None:
        """Raises: ValueError: it has said what no work-horse says."""
        for kind, body in self._line.hear(at_most_s):
            if kind == PROGRESS:
                progress = Progress.unpacked(body)
                if progress.run == self.runs:
                    report_progress(progress.body)
                continue
            report = Report.unpacked(body)
            if kind != ENDED or report.run != self.runs:
                raise ValueError(f"kind {kind!r}, run {report.run} while {self.runs} is under way")
            self._is_fit = report.is_fit
            return report.outcome
        return None

    def kill(self) -> None:
        """Ends it, and whatever it has started and left in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._end.alive:  # nobody has waited for it, so that its pid is still its own
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # a task may have left the group

    def let_go(self) -> None:
        """Tells it to go, now that it runs nothing, and does not wait for it."""
        self._line.say_no_more()

    def dismiss(self) -> None:
        """Has it go, now that it runs nothing; one that cannot go any more is ended."""
        self._line.hang_up(GOES_WITHIN_S)
        self._end()


def _end(pid: int, worker_pid: int) -> None:
    """Ends a work-horse, dead or alive; not from a copy of the worker, as another work-horse is one."""
    if os.getpid() != worker_pid:
        return
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
