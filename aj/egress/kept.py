"""Connections that wait for the next attempt for the same receiver.

One is handed out again only for the same scheme, host and port, and for a few seconds: so long may a name that leads
elsewhere by now still be called at the address that was checked. Nothing here dials or judges an address.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from aj import clock
from aj.egress.address import Address
from aj.egress.exchange import Line
from aj.egress.url import Target

# From the look-up of the name, however often a connection is used meanwhile.
LIFE_S = 10.0
# Over all receivers; of more that could be kept, the one that waits longest is closed.
MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Kept:
    """A line that leads to `address`, to be used until `ends_at_s` on the monotonic clock."""

    line: Line
    target: Target
    address: Address
    ends_at_s: float

    def leads_to(self, target: Target) -> bool:
        """Whether the other end is that of `target`; the path makes no difference."""
        ours = self.target
        return (ours.scheme, ours.host, ours.port) == (target.scheme, target.host, target.port)

    def is_over(self) -> bool:
        """Whether it has been used for long enough."""
        return clock.monotonic_s() >= self.ends_at_s


class KeptLines:
    """Idle lines, the one that waits longest first; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Kept] = []

    def take(self, target: Target) -> Kept | None:
        """A line to the receiver of `target` for this caller alone, or None: the one that was used last."""
        while (kept := self._pop(target)) is not None:
            if not kept.is_over() and kept.line.is_silent():
                return kept
            kept.line.close()
        return None

    def give(self, kept: Kept) -> None:
        """Keeps a line for the next one, or closes it where nobody may use it again."""
        if not kept.line.may_be_kept():
            kept.line.close()
            return
        with self._lock:
            self._idle.append(kept)
            surplus = self._idle.pop(0) if len(self._idle) > MOST_KEPT else None
        if surplus is not None:
            surplus.line.close()

    def close_old(self) -> None:
        """Closes what has waited to the end of its life. Call it now and then."""
        with self._lock:
            old = [each for each in self._idle if each.is_over()]
            self._idle = [each for each in self._idle if each not in old]
        for each in old:
            each.line.close()

    def close(self) -> None:
        """Closes all that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.line.close()

    def _pop(self, target: Target) -> Kept | None:
        with self._lock:
            for at in reversed(range(len(self._idle))):
                if self._idle[at].leads_to(target):
                    return self._idle.pop(at)
        return None
