"""File locks that end with the processes that hold them, however these die.

A lock belongs to an open file, so a forked child shares it with its parent and the lock lasts until
both have gone. The files are never deleted: a lock on a deleted file would exclude nobody.
This file knows nothing of what the locks guard.

Source: flock(2).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from aj.local.waiting import wait_for

POLL_S = 0.005


class Lock:
    """A lock that is held. `fd` may be handed to a child, which then holds it as well."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def note(self, pid: int) -> None:
        """Writes into the locked file which process it is about, for the messages of others."""
        os.pwrite(self.fd, f"{pid:>10}\n".encode("ascii"), 0)  # one width, so that nobody reads half of it

    def is_of(self, path: Path) -> bool:
        """Whether `path` still names the locked file; False where it was deleted, whatever has its name now."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.stat(path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Gives up this process's share; a child that inherited the descriptor keeps its own."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(path: Path) -> Lock | None:
    """The exclusive lock on `path`, or None where anyone holds a lock on it."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return Lock(fd)


def lock(path: Path, wait_s: float) -> Lock:
    """The exclusive lock on `path`.

    Raises: TimeoutError: it was not free within `wait_s` seconds.
    """
    found: list[Lock] = []

    def taken() -> bool:
        held = try_lock(path)
        if held is not None:
            found.append(held)
        return held is not None

    if not wait_for(taken, wait_s, POLL_S):
        raise TimeoutError(f"{path} is locked by another process")
    return found[0]


def share_lock(path: Path) -> Lock:
    """A shared lock on `path`. Waits while another process looks whether it is alone, which is very short."""
    fd = _open(path)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return Lock(fd)


def has_owner(path: Path) -> bool:
    """Whether anyone holds the exclusive lock on `path`. Asking it at the same time disturbs nobody."""
    return not _can(path, fcntl.LOCK_SH)


def is_in_use(path: Path) -> bool:
    """Whether anyone, this process included, holds any lock on `path`. Two who ask at once may see each other."""
    return not _can(path, fcntl.LOCK_EX)


def _can(path: Path, kind: int) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True
