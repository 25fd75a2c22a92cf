"""The exit codes, on which scripts rely. Values only; nothing is loaded for them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes. `docs/cli.md` gives their meaning."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NO_SUCH_JOB = 4
    NOT_ENDED = 5
    NO_ANSWER = 6
    CRASHED = 70  # EX_SOFTWARE of sysexits.h, since 1 would say that a job has failed
    UNWRITTEN = 74  # EX_IOERR
    INTERRUPTED = 130  # as a shell reports SIGINT
    READER_GONE = 141  # as a shell reports SIGPIPE
