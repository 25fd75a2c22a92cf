"""The pipe through which a work-horse tells its worker how far it has come. It holds bytes and no job."""

from __future__ import annotations

import os
import select

_ENDED, _WRITTEN = b"e", b"w"


class ReportPipe:
    """Made before the fork; the work-horse says, the worker listens."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._heard = b""
        self._is_silent = False

    def say_ended(self) -> None:
        """The task has ended; no time limit counts for what follows."""
        os.write(self._writer, _ENDED)

    def say_written(self) -> None:
        """What there is to say of the task is in the store."""
        os.write(self._writer, _WRITTEN)

    def listen_only(self) -> None:
        """Gives up this process's end for saying, so that the death of the other one can be heard."""
        os.close(self._writer)

    def wait(self, at_most_s: float) -> None:
        """Returns when something was said or the work-horse died, or after `at_most_s` seconds."""
        # A task may close what it inherited, and run on: then there is nothing to wait for but time.
        select.select([] if self._is_silent else [self._reader], [], [], at_most_s)

    def listen(self) -> None:
        """Takes in what was said. A process that the task left behind may hold the pipe open in silence."""
        try:
            heard = os.read(self._reader, 16)
        except BlockingIOError:
            return
        self._heard += heard
        self._is_silent = not heard

    @property
    def has_ended(self) -> bool:
        return bool(self._heard)

    @property
    def has_written(self) -> bool:
        return _WRITTEN in self._heard

    def close(self) -> None:
        os.close(self._reader)
