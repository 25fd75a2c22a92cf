"""What a process is by for everything that it runs, as it was before any task: where it stands, which signals wait.

It is put back after each run, so that the next job finds it as the first one did. It costs a few microseconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

_OF_TIMERS = (signal.SIGALRM, signal.SIGPROF, signal.SIGVTALRM)


@dataclass(frozen=True, slots=True)
class Bearings:
    """`directory` is None where it is gone."""

    directory: str | None
    umask: int
    blocked: frozenset[int]

    @classmethod
    def taken(cls) -> Bearings:
        """Those of this process, and of its main thread, which has to call it."""
        try:
            directory = os.getcwd()
        except OSError:
            directory = None
        return cls(directory, _umask(), frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())))

    def restore(self) -> None:
        """Puts them back, and stops the timers that were left running. Never raises."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if signal.pthread_sigmask(signal.SIG_BLOCK, ()) != self.blocked:
            _drop_what_waits()
            signal.pthread_sigmask(signal.SIG_SETMASK, self.blocked)
        os.umask(self.umask)
        if self.directory is not None:
            with contextlib.suppress(OSError):
                os.chdir(self.directory)


def _umask() -> int:
    """It can be read by setting it only."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _drop_what_waits() -> None:
    """A timer's signal that was blocked would end the process now; to ignore it for a moment is to drop it."""
    for each in _OF_TIMERS:
        handler = signal.signal(each, signal.SIG_IGN)
        signal.signal(each, signal.SIG_DFL if handler is None else handler)
