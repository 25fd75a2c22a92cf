"""What processes owe each other and their user: a child ends with its parent, and Ctrl-C ends without a traceback.

As far as the operating system helps. This file starts no process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # Source: linux/prctl.h
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded here, since between fork and exec nothing may be loaded


def die_with_parent(parent_pid: int, sig: signal.Signals) -> None:
    """Asks the kernel to send `sig` to this process when its parent dies; call it first thing in a forked child.

    Linux only; elsewhere a child outlives a parent that is killed.
    """
    if sys.platform == "linux" and _is_orphan_after_asking(parent_pid, sig):
        os.kill(os.getpid(), sig)


def ends_with_parent() -> Callable[[], None] | None:
    """A `preexec_fn` for a program that gets SIGTERM when the process that started it dies, however it dies.

    Linux only; None elsewhere, where such a child has to be found and ended by the next start.
    The child must be started by the parent's main thread, since the signal follows the thread.
    """
    if sys.platform != "linux":
        return None
    parent_pid = os.getpid()

    def apply() -> None:
        if _is_orphan_after_asking(parent_pid, signal.SIGTERM):
            os._exit(1)  # a signal would meet the parent's handlers, which are still in place before the exec

    return apply


def _is_orphan_after_asking(parent_pid: int, sig: signal.Signals) -> bool:
    """Whether the parent died before the kernel was asked, so that the signal would never come.

    Source: prctl(2), PR_SET_PDEATHSIG.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)
    return os.getppid() != parent_pid


class Stop(threading.Event):
    """An Event that a handler of signals may set, whomever the signal strikes.

    Event's own lock is not given twice, so a signal that strikes its thread while it sets or waits would make the
    thread wait for itself, for ever; two signals in a row, as a supervisor's and a parent's, are enough. This lock is
    given to its owner again. A wait that was just about to begin then lasts its time, and sees the wish at its end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cond = threading.Condition(threading.RLock())


def die_at_interrupt() -> None:
    """Lets SIGINT end this process at once and silently, until somebody sets a handler of its own.

    For the first lines of a program: Python's own handler would print a traceback of whatever is being imported.
    A shell reports such an end as 130. An interrupt that is ignored, as in a background job, stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
