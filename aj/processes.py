"""What parent and child processes owe each other, as far as the operating system helps."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # Source: linux/prctl.h


def die_with_parent(parent_pid: int, sig: signal.Signals) -> None:
    """Asks the kernel to send `sig` to this process when its parent dies; call it first thing in the child.

    Linux only; elsewhere a child outlives a parent that is killed. The pid check closes the gap in which the
    parent died before the kernel was asked.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), sig)
