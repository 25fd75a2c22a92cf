"""How many may ask the store at a time, and when to stop asking one that hangs. Knows nothing of Redis."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from aj.clock import monotonic_s

# More than a process of Python can keep busy. Each one beyond would open a connection more, for nothing.
MOST_ASKERS = 32
PAUSE_S = 1.0
# How long a caller that tries again may take before another one does.
PROBE_S = 4.0
NEVER = float("-inf")


class Breaker:
    """Lets requests fail at once for a moment after one had to wait for a frozen store.

    Without it requests would queue for threads that all sit out the time limit, and the last of them would wait
    many times as long. After a second one request is let through to try; the others go on failing until it is back.

    Who asks takes a place first, with the breaker as a context, and then hears whether to ask: so a request that stood
    in line while the store hung fails as soon as it is its turn.
    """

    def __init__(self, askers: int = MOST_ASKERS) -> None:
        # A queue of tokens is a semaphore in C: a tenth of the time of `threading`'s, which is Python.
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(askers):
            self._places.put(None)
        self._lock = threading.Lock()
        self._closed_until_s = NEVER

    def __enter__(self) -> None:
        self._places.get()

    def __exit__(self, *_: object) -> None:
        self._places.put(None)

    def lets_through(self) -> bool:
        """Whether to ask the store. A caller that is let through after the pause keeps the others out meanwhile."""
        if self._closed_until_s == NEVER:
            return True
        with self._lock:
            now_s = monotonic_s()
            if now_s < self._closed_until_s:
                return False
            if self._closed_until_s != NEVER:
                self._closed_until_s = now_s + PAUSE_S + PROBE_S
            return True

    def note(self, *, timed_out: bool) -> None:
        if timed_out or self._closed_until_s != NEVER:
            with self._lock:
                self._closed_until_s = monotonic_s() + PAUSE_S if timed_out else NEVER
