"""The total time of one attempt, and what is left of it.

A socket's own timeout starts anew with every byte, so a receiver that drips could hold us for ever. So whoever waits
for a receiver asks here before each wait how long it may take; nothing here waits or knows a socket.
"""

from __future__ import annotations

from aj import clock
from aj.errors import DeliveryFailed


class Deadline:
    """`timeout_s` from now."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._ends_at_s = clock.monotonic_s() + timeout_s

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
