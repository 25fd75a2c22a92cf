"""What a work-horse does: takes an order, runs the task inside its surroundings, tells how it ended, waits again.

Between two jobs it keeps what tasks keep: modules, connections, caches. What belongs to one job alone does not stay.
`docs/settings.md` says which is which.
"""

from __future__ import annotations

import contextlib
import contextvars
import mmap
import os
import random
import resource
import signal
import sys
from dataclasses import dataclass
from typing import NoReturn

from aj.clock import monotonic_s
from aj.execute import Limits, TimedOut, execute, prepare
from aj.job import Outcome
from aj.logs import about, about_in_every_thread
from aj.processes import die_with_parent
from aj.registry import Registry
from aj.worker.alarm import alarm_after
from aj.worker.bearings import Bearings
from aj.worker.line import Line
from aj.worker.message import Order
from aj.worker.surroundings import Surroundings, inside
from aj.worker.voice import Voice

# A work-horse that has grown by more than this is not used again.
GROWTH_MOST_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Stall:
    """Where work-horses live: what each of them works with. `max_result_bytes` bounds a result's JSON."""

    registry: Registry
    surroundings: Surroundings
    max_result_bytes: int

    def live(self, line: Line, begun: mmap.mmap, worker_pid: int) -> NoReturn:
        """The life of the process that calls it, a fork of its worker, until the worker hangs up."""
        try:
            _leave_the_worker(worker_pid)
            pid, at_first_bytes, runs = os.getpid(), _resident_bytes(), 0
            bearings = Bearings.taken()
            while line.is_open:
                for _, body in line.hear():
                    begun[0] = 1
                    runs += 1
                    voice = Voice(line, runs)
                    outcome = contextvars.copy_context().run(self._run, Order.unpacked(body), voice)
                    if os.getpid() != pid:
                        os._exit(0)  # a process that the task forked and that came back from it: it runs no jobs
                    bearings.restore()
                    _flush()
                    is_fit = _resident_bytes() - at_first_bytes <= GROWTH_MOST_BYTES
                    voice.end(outcome, is_fit)
        finally:
            os._exit(0)

    def _run(self, order: Order, voice: Voice) -> Outcome:
        with about(order.job_id, order.task, order.attempt, order.traceparent):
            about_in_every_thread()
            limits = Limits(order.timeout_s, self.max_result_bytes)
            deadline_s = monotonic_s() + order.timeout_s

            # The checks of parameters are the application's code as well as the task is.
            def call() -> object:
                return prepare(self.registry, order.task, order.params)()

            try:
                with alarm_after(order.timeout_s, TimedOut):
                    label = f"job {order.job_id}"
                    return execute(inside(self.surroundings, call), limits, deadline_s, voice.report, label)
            except TimedOut:
                return Outcome.timed_out(order.timeout_s)


def _leave_the_worker(worker_pid: int) -> None:
    """What the fork inherited and must not share: the group, the handlers, the numbers that chance gives."""
    die_with_parent(worker_pid, signal.SIGKILL)
    os.setpgrp()
    random.seed()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C asks the worker to stop, which lets the job end
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _flush() -> None:
    """A task may have put anything in place of a stream, and a process that was started without one has None."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()


def _resident_bytes() -> int:
    """The memory that this process holds; where only its peak is known, that."""
    try:
        with open("/proc/self/statm", "rb") as sizes:
            return int(sizes.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
