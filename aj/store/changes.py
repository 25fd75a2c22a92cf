"""Tells those who wait for a job that it has changed: one subscription for a whole process, however many wait.

A change is a hint to look again, never the news itself: who looks sees the truth, and a lost hint costs a second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator

import redis

from aj.store.client import Client

log = logging.getLogger("aj.store")

LISTEN_S = 1.0
SUBSCRIBE_WITHIN_S = 1.0


class Changes:
    """Hints from one deployment's channel. Starts its thread with the first who waits, after any fork."""

    def __init__(self, client: Client, channel: str) -> None:
        self._client, self._channel = client, channel
        self._lock = threading.Lock()
        self._waiting: dict[str, set[threading.Event]] = {}
        self._listening = threading.Event()
        self._pid = 0

    @contextlib.contextmanager
    def watching(self, job_id: str) -> Iterator[threading.Event]:
        """An event that is set whenever the job has changed since this began. Look only after it has begun."""
        changed = threading.Event()
        with self._lock:
            self._waiting.setdefault(job_id, set()).add(changed)
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._listen, name="aj-changes", daemon=True).start()
        self._listening.wait(SUBSCRIBE_WITHIN_S)
        try:
            yield changed
        finally:
            with self._lock:
                self._waiting[job_id].discard(changed)
                if not self._waiting[job_id]:
                    del self._waiting[job_id]

    def _listen(self) -> None:
        while True:
            try:
                with contextlib.closing(self._client.pubsub()) as channel:  # type: ignore[no-untyped-call]
                    channel.subscribe(self._channel)
                    while True:
                        self._take(channel.get_message(timeout=LISTEN_S))
            except redis.RedisError as error:
                if self._listening.is_set():
                    log.warning("waiting requests look by themselves until the store is back: %s", type(error).__name__)
            self._listening.clear()
            self._wake(None)
            threading.Event().wait(LISTEN_S)

    def _take(self, message: dict[str, object] | None) -> None:
        if message is None:
            return
        if message["type"] == "subscribe":
            self._listening.set()
            self._wake(None)
        elif isinstance(message["data"], bytes):
            self._wake(message["data"].decode())

    def _wake(self, job_id: str | None) -> None:
        """Wakes those who wait for `job_id`, or all."""
        with self._lock:
            waiting = list(self._waiting.values()) if job_id is None else [self._waiting.get(job_id, set())]
            for events in waiting:
                for changed in events:
                    changed.set()
