"""What one run says to the worker while it lasts, and at its end. Of a run that has ended nobody hears any more."""

from __future__ import annotations

import os

from aj.job import Outcome
from aj.worker.line import Line
from aj.worker.message import ENDED, PROGRESS, Progress, Report


class Voice:
    """The voice of the run of that number. Threads share it; a process that the task forks has none."""

    def __init__(self, line: Line, run: int) -> None:
        self._line, self._run, self._pid, self._has_ended = line, run, os.getpid(), False

    def report(self, progress: bytes) -> None:
        """Says how far it is; nothing after the end, since a task may leave threads behind."""
        if os.getpid() != self._pid:
            return
        with self._line.lock:
            if not self._has_ended:
                self._line.say(PROGRESS, Progress(self._run, progress).packed())

    def end(self, outcome: Outcome, is_fit: bool) -> None:
        """Says how it ended, which is its last word."""
        with self._line.lock:
            self._has_ended = True
            self._line.say(ENDED, Report(self._run, outcome, is_fit).packed())
