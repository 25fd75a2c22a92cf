"""Signals as something that a loop can wait for, beside its other descriptors.

A handler that does work can meet the program at any line; here a signal only leaves a byte in a pipe.
"""

from __future__ import annotations

import os
import select
import signal


class Signals:
    """Collects the given signals from now until `close`, which puts the former handlers back.

    For the main thread only. Children start with the default handlers.
    """

    def __init__(self, *watched: signal.Signals) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._former_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._former = {each: signal.signal(each, lambda *_: None) for each in watched}

    def fileno(self) -> int:
        """The descriptor that is readable while signals wait to be taken."""
        return self._reader

    def take(self) -> list[signal.Signals]:
        """The signals that came since the last call, oldest first."""
        try:
            return [signal.Signals(number) for number in os.read(self._reader, 4096)]
        except BlockingIOError:
            return []

    def wait(self, wait_s: float) -> list[signal.Signals]:
        """The next signals, or none within `wait_s` seconds."""
        select.select([self._reader], [], [], wait_s)
        return self.take()

    def close(self) -> None:
        """Puts the former handlers back."""
        for each, handler in self._former.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(self._former_fd)
        os.close(self._reader)
        os.close(self._writer)

    def __enter__(self) -> Signals:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
