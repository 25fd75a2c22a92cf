"""Tells those who wait for a job that it has changed: one subscription for a whole process, however many wait.

A change is a hint to look again, never the news itself: who looks sees the truth.
While nothing changes nobody looks, so the subscription must never be dead unnoticed: in silence it is asked for a
sign of life, and whenever it has begun anew, or could not, all who wait look once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

import redis

from aj.store.client import Client

log = logging.getLogger("aj.store")

# After so much silence the store is asked for a sign of life; three times in a row, and it is given up.
# A connection whose other end has vanished, or stands still, is silent for ever and gives no error.
SILENCE_S = 1.0
SILENCES = 3
TRY_AGAIN_S = 1.0
# What follows a job's id in the news of its end, or of its deletion.
ENDED = " ended"


class Changes:
    """Hints from one deployment's channel. Starts its thread with the first who waits, after any fork."""

    def __init__(self, client: Client, channel: str) -> None:
        self._client, self._channel = client, channel
        self._lock = threading.Lock()
        self._waiting: dict[str, set[threading.Event]] = {}
        self._is_heard = False
        self._pid = 0

    @contextlib.contextmanager
    def watching(self, job_id: str, *, only_end: bool = False) -> Iterator[threading.Event]:
        """An event that is set whenever the job may have changed since this began, or, with `only_end`, may have ended.

        Look once after it has begun.
        """
        changed, news = threading.Event(), job_id + ENDED if only_end else job_id
        with self._lock:
            self._waiting.setdefault(news, set()).add(changed)
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._listen, name="aj-changes", daemon=True).start()
        try:
            yield changed
        finally:
            with self._lock:
                self._waiting[news].discard(changed)
                if not self._waiting[news]:
                    del self._waiting[news]

    def wake_all(self) -> None:
        """Has all who wait look once."""
        self._wake(None)

    def _listen(self) -> None:
        while True:
            try:
                with contextlib.closing(self._client.pubsub()) as channel:  # type: ignore[no-untyped-call]
                    channel.subscribe(self._channel)
                    self._hear(channel)
            except Exception as error:
                # Whatever it is: nobody would start this thread again, and who waits hears of nothing without it.
                self._lose(error)
                threading.Event().wait(TRY_AGAIN_S)

    def _hear(self, channel: Any) -> None:
        """Passes hints on until the channel is dead, or the store is another one."""
        silences = 0
        while silences < SILENCES:
            message = channel.get_message(timeout=SILENCE_S)
            if message is not None:
                silences = 0
                self._take(message)
            elif self._client.is_replaced(channel.connection):
                return
            else:
                silences += 1
                channel.ping()

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            # What changed before this moment was told to nobody here.
            self._is_heard = True
            self._wake(None)
        elif message["type"] == "message":
            news = message["data"].decode()
            self._wake({news, news.removesuffix(ENDED)})

    def _lose(self, error: Exception) -> None:
        if self._is_heard or not isinstance(error, redis.RedisError):
            log.warning("waiting requests look for themselves until the store is back: %s", type(error).__name__)
        self._is_heard = False
        if self._client.breaker is not None and isinstance(error, redis.TimeoutError):
            # Else each who waits would find out for itself that the store hangs.
            self._client.breaker.note(timed_out=True)
        self._wake(None)

    def _wake(self, news: set[str] | None) -> None:
        """Wakes those who wait for one of these, or all."""
        with self._lock:
            waiting = (
                list(self._waiting.values()) if news is None else [self._waiting.get(each, set()) for each in news]
            )
            for events in waiting:
                for changed in events:
                    changed.set()
