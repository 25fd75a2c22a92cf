"""The pipe through which a work-horse tells its worker how far it has come. It holds bytes and no job."""

from __future__ import annotations

import os
import select

FIRST_NAP_S = 0.001
_ENDED, _WRITTEN = b"e", b"w"


class ReportPipe:
    """Made before the fork; the work-horse says, the worker listens."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._heard = b""
        self._nap_s = 0.0

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
        if not self._nap_s:
            select.select([self._reader], [], [], at_most_s)
            return
        # The end of the file is heard a moment before the death of the process can be, and that is nearly always
        # what follows. But a task may close what it inherited, and run on.
        select.select([], [], [], min(self._nap_s, at_most_s))
        self._nap_s *= 2

    def listen(self) -> None:
        """Takes in what was said. A process that the task left behind may hold the pipe open in silence."""
        try:
            heard = os.read(self._reader, 16)
        except BlockingIOError:
            return
        self._heard += heard
        if not heard and not self._nap_s:
            self._nap_s = FIRST_NAP_S

    @property
    def has_ended(self) -> bool:
        return bool(self._heard)

    @property
    def has_written(self) -> bool:
        return _WRITTEN in self._heard

    def close(self) -> None:
        os.close(self._reader)
