"""What happens in a deployment, in figures: counted by the scripts and by the API, read for `GET /metrics`.

All of it stands in the store, so that every process of every host tells the same.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rq.suspension import WORKERS_SUSPENDED
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from aj.errors import StoreUnavailable
from aj.store.client import Client, errors_converted
from aj.store.keys import Keys
from aj.store.replies import text, whole
from aj.store.rq_classes import Queue
from aj.store.scripts import Script

# What is counted without asking the store is held for so long, so that a flood of refusals costs it little.
HELD_S = 1.0
LIFE_S = 30 * 86_400
# Upper bounds of the histograms, in seconds; `count.lua` has the same in milliseconds.
BOUNDS_S = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1800.0,
    3600.0,
)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One queue: jobs in it, how long its first one has waited (None: nobody knows, or nothing waits), workers."""

    name: str
    jobs: int
    oldest_s: float | None
    workers: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures at one moment. `counts` goes by the words of what was counted."""

    counts: dict[tuple[str, ...], int]
    running: int
    delayed: int
    pending: int
    oldest_pending_s: float | None
    queues: list[QueueFigures]
    is_suspended: bool


class Figures:
    """Counts and reads the figures of one deployment."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self._read = Script(client, "workers", "first_in_queue", "figures")
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._sent_by = 0

    def count_refused(self, why: str) -> None:
        """Counts a submission that was refused; `why` is a word of ours. Asks the store in a moment, not now."""
        with self._lock:
            self._held[f"submissions {why}"] += 1
            if self._sent_by == os.getpid():
                return
            self._sent_by = os.getpid()
        sending = threading.Timer(HELD_S, self._send)
        sending.daemon = True
        sending.start()

    def _send(self) -> None:
        """Adds what is held to what the store has; where it is away, with the next refusal."""
        with self._lock:
            held, self._held, self._sent_by = self._held, Counter(), 0
        if not held:
            return
        try:
            with errors_converted(self._client.breaker), self._client.pipeline() as pipe:
                for what, times in held.items():
                    pipe.hincrby(self._keys.metrics, what, times)
                pipe.expire(self._keys.metrics, LIFE_S)
                pipe.execute()
        except StoreUnavailable:
            with self._lock:
                self._held.update(held)

    def read(self, queues: Sequence[str]) -> Reading:
        """All figures in one round trip, after what is held. Raises: StoreUnavailable."""
        self._send()
        names = [self._keys.metrics, self._keys.leases, self._keys.delayed, self._keys.pending, WORKERS_SUSPENDED]
        words = [self._keys.job(""), Queue.redis_queue_namespace_prefix, WORKERS_BY_QUEUE_KEY % "", self._keys.prefix]
        now_ms, pairs, running, delayed, pending, oldest_ms, suspended, *lines = self._read(names, [*words, *queues])

        def age_s(since_ms: int) -> float | None:
            return None if since_ms < 0 else max(0.0, (now_ms - since_ms) / 1000)

        return Reading(
            counts={
                tuple(text(what).split(" ")): count
                for what, times in zip(pairs[::2], pairs[1::2], strict=True)
                if (count := whole(times)) is not None
            },
            running=running,
            delayed=delayed,
            pending=pending,
            oldest_pending_s=age_s(oldest_ms),
            queues=[
                QueueFigures(name, jobs, age_s(since_ms), workers)
                for name, (jobs, since_ms, workers) in zip(queues, lines, strict=True)
            ],
            is_suspended=bool(suspended),
        )
