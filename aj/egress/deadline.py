"""The total time of one attempt: what is left of it, and a watchdog that cuts the connection at its end.

A socket's own timeout starts anew with every byte, so a receiver that drips could hold us for ever.
It never closes a socket of somebody else: it shuts one down through a descriptor of its own.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from aj import clock
from aj.errors import DeliveryFailed


class Deadline:
    """`timeout_s` from now. Call `stop` when the attempt is over."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._ends_at_s = clock.monotonic_s() + timeout_s
        self._lock = threading.Lock()
        self._watched: socket.socket | None = None
        self._timer: threading.Timer | None = None

    def is_over(self) -> bool:
        """Whether the time is spent."""
        return clock.monotonic_s() >= self._ends_at_s

    def left_s(self) -> float:
        """Seconds left, more than 0.

        Raises: DeliveryFailed: none is left.
        """
        left_s = self._ends_at_s - clock.monotonic_s()
        if left_s <= 0:
            raise self.missed()
        return left_s

    def missed(self) -> DeliveryFailed:
        """The error that says that the time was not enough."""
        return DeliveryFailed("timeout", f"no answer within {self._timeout_s:g} s")

    def watch(self, connected: socket.socket) -> None:
        """Shuts `connected` down at the end of the time, whoever then owns its descriptor.

        Raises: DeliveryFailed: no time is left, or no descriptor.
        """
        self._timer = threading.Timer(self.left_s(), self._cut)
        self._timer.daemon = True
        try:
            self._watched = connected.dup()
        except OSError as error:
            raise DeliveryFailed("connect", f"the connection cannot be watched: {error.strerror}") from None
        self._timer.start()

    def stop(self) -> None:
        """Ends the watch. Nothing of it remains: no thread, no descriptor."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self._watched is not None:
                self._watched.close()
                self._watched = None
        if self._timer is not None and self._timer.ident is not None:
            self._timer.join()

    def _cut(self) -> None:
        with self._lock:
            if self._watched is not None:
                with contextlib.suppress(OSError):  # the other side was quicker
                    self._watched.shutdown(socket.SHUT_RDWR)
