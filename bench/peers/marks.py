"""Counts executed jobs in the same way for every stack: one byte for each at the end of a file, one system call."""

import os

_path = os.environ.get("BENCH_MARKS")
_file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if _path else None


def mark() -> None:
    """Notes that one more job has run; nothing where the bench does not count."""
    if _file is not None:
        os.write(_file, b".")
