"""The log of receipts: one file that several processes append to, and that is also their memory.

An append holds an exclusive `flock` while it reads what was added since it last looked, decides whether the
webhook was seen before, and writes one line. So lines stay whole, and what is a duplicate holds across threads,
processes and restarts. The file is opened anew for each append: a lock taken on a descriptor that was inherited
over a fork would shut nobody out, and a log that was moved away is noticed.
The memory is what the file says: a log that is rotated or cut short is begun anew, and so is the memory.
About 100 bytes are held in each process for each receipt in the file; rotate the log to bound them.
Nothing here knows HTTP. Every failure is an OSError, and after one the file ends with a whole line.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from contextlib import ExitStack

from aj import clock
from hooksink.receipts import LINE_MAX_BYTES, Receipt, Signature, format_line, parse_line

LOCK_WAIT_S = 5.0
LOCK_POLL_S = 0.002
TAIL_BYTES = 256


class ReceiptLog:
    """The receipts in the file at `path`, which is created where it is absent."""

    def __init__(self, path: str) -> None:
        """Opens the log once, to read what it holds.

        Raises: OSError: it is no regular file that can be read and written.
        """
        self._path = path
        self._threads = threading.Lock()
        self._seen_ids: set[str] = set()
        self._read_bytes = 0
        self._tail = b""  # what stood just before `_read_bytes`: while it stands there, the file is the one we read
        with ExitStack() as closing:
            self._catch_up(_open_locked(path, closing))

    def append(self, job_id: str, status: str, webhook_id: str, signature: Signature) -> Receipt:
        """Writes one receipt and returns it once it is on disk.

        Raises: OSError: it could not be written, or the log stayed locked for 5 s. The file holds no part of it
            then, except where only the last step, the sync to disk, failed.
        """
        with ExitStack() as closing:
            if not self._threads.acquire(timeout=LOCK_WAIT_S):
                raise TimeoutError(f"{self._path} stayed busy for {LOCK_WAIT_S:.0f} s")
            try:
                fd = _open_locked(self._path, closing)
                self._catch_up(fd)
                receipt = Receipt(
                    received_at=clock.rfc3339(clock.now_ms()),
                    job_id=job_id,
                    status=status,
                    webhook_id=webhook_id,
                    signature=signature,
                    duplicate=webhook_id in self._seen_ids,
                )
                # A crash may have left half a line; it must not become the start of this one.
                is_first = self._read_bytes == 0
                cut_short = bool(self._tail) and not self._tail.endswith(b"\n")
                _write_whole(fd, b"\n" * cut_short + format_line(receipt), self._read_bytes)
                fcntl.flock(fd, fcntl.LOCK_UN)
            finally:
                self._threads.release()
            # Outside the lock, so that several appends can share one trip to the disk.
            os.fsync(fd)
            if is_first:
                _sync_folder(self._path)
            return receipt

    def last(self, count: int) -> list[Receipt]:
        """The newest `count` receipts, newest first, from at most `count` times the longest line at the file's end.

        Raises: OSError: the log cannot be read.
        """
        with open(self._path, "rb") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            start = max(0, size_bytes - count * LINE_MAX_BYTES)
            file.seek(start)
            lines = file.read(size_bytes - start).split(b"\n")
        # After the last newline stands nothing, or a line that is being written. A cut first line is no receipt.
        whole = lines[0 if start == 0 else 1 : -1]
        found: list[Receipt] = []
        for line in reversed(whole):
            receipt = parse_line(line)
            if receipt is not None:
                found.append(receipt)
            if len(found) == count:
                break
        return found

    def _catch_up(self, fd: int) -> None:
        """Reads what was appended since the last look. The caller holds both locks."""
        if os.pread(fd, len(self._tail), self._read_bytes - len(self._tail)) != self._tail:
            self._seen_ids.clear()
            self._read_bytes = 0
        with open(fd, "rb", closefd=False) as file:
            file.seek(self._read_bytes)
            for line in file:
                receipt = parse_line(line)
                if receipt is not None and receipt.webhook_id:
                    self._seen_ids.add(receipt.webhook_id)
            self._read_bytes = file.tell()
        tail_bytes = min(TAIL_BYTES, self._read_bytes)
        self._tail = os.pread(fd, tail_bytes, self._read_bytes - tail_bytes)


def _open_locked(path: str, closing: ExitStack) -> int:
    """A descriptor of the file that `path` names, exclusively locked; `closing` closes it, which unlocks it."""
    deadline_s = clock.monotonic_s() + LOCK_WAIT_S
    while True:
        # Without O_NONBLOCK, opening a pipe would hang; for a regular file it means nothing.
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        closing.callback(os.close, fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{path} is not a regular file")
        _lock(fd, path, deadline_s)
        # The log may have been moved away between the two steps; a lock on the old file would guard nothing.
        if _names(path, fd):
            return fd


def _lock(fd: int, path: str, deadline_s: float) -> None:
    """Waits for the lock in short steps, so that a frozen process cannot freeze this one as well."""
    pause = threading.Event()
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if clock.monotonic_s() >= deadline_s:
                raise TimeoutError(f"{path} stayed locked by another process for {LOCK_WAIT_S:.0f} s") from None
        pause.wait(LOCK_POLL_S)


def _names(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _write_whole(fd: int, line: bytes, end_bytes: int) -> None:
    """Appends `line` to a file of `end_bytes` bytes whole, or leaves the file as it was.

    One `write` is the rule. A full disk or a quota can cut it short, and the rest is then tried for its reason.
    """
    try:
        written = os.write(fd, line)
        while written < len(line):
            written += os.write(fd, line[written:])
    except OSError:
        os.ftruncate(fd, end_bytes)
        raise


def _sync_folder(path: str) -> None:
    """Makes a new file's name as durable as its content."""
    fd = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
