"""Connections to Redis, and the boundary at which its errors become ours.

Nothing outside this room and the worker sees a redis-py object. Time limits are set on every connection,
since a frozen server would otherwise hold a request for as long as it likes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from aj.clock import monotonic_s
from aj.errors import SettingsError, StoreUnavailable
from aj.store.breaker import MOST_ASKERS, Breaker
from aj.store.sentinel import MasterPool, is_sentinel_url, pool_by_sentinels

log = logging.getLogger("aj.store")
Reply = TypeVar("Reply")

# A request asks at most twice, so these keep a 503 within the 3 s of the contract.
CONNECT_TIMEOUT_S = 1.0
REPLY_TIMEOUT_S = 1.2
# A worker waits in BLMOVE for up to 2 s, and nobody waits for a worker.
WORKER_REPLY_TIMEOUT_S = 10.0
AWAY = "The job store cannot be used at the moment; try again a little later."


class Client(redis.Redis):
    """A Redis client. One that serves requests has a `breaker`."""

    breaker: Breaker | None = None

    def call(self, *words: Any) -> Any:
        """Sends one command and gives its reply as it came: what `execute_command` does, and nothing else.

        redis-py's own way also times, counts and routes each command. That costs a request 70 of the 110 µs that its
        one script costs it here; the connection, the pool and the rule for a second try are the same.
        """
        connection: Any = self.connection_pool.get_connection()
        try:
            packed = [hiredis.pack_command(words)]

            def once() -> Any:
                connection.send_packed_command(packed)
                return connection.read_response()

            return connection.retry.call_with_retry(once, lambda _error: connection.disconnect())
        finally:
            self.connection_pool.release(connection)

    def is_replaced(self, connection: Any) -> bool:
        """Whether `connection` leads to a master that lives and is the master no more, as after a planned failover."""
        pool: Any = self.connection_pool
        if isinstance(pool, MasterPool):
            pool.ask_now_and_then()
        return not pool.owns_connection(connection)


def commands_of(pipeline: redis.client.Pipeline) -> list[tuple[Any, ...]]:
    """The commands that wait in `pipeline`, each as its words. `command_stack` is not in redis-py's promises;
    a test holds that it is as we think."""
    return [words for words, _options in pipeline.command_stack]


def connect(url: str | None, *, for_worker: bool = False) -> Client:
    """A client for `url` with time limits; no connection is made yet.

    A request's client sends a command again once after a lost connection, which is safe because every
    script of ours answers a repeat as it answered the first. A worker's never does: a repeated BLMOVE would
    take a second job.

    `url` may name Sentinels, which say where the store is; see `sentinel`.

    Raises: SettingsError: the URL is missing or cannot be understood.
    """
    if url is None:
        raise SettingsError("AJ_REDIS_URL is not set; give it the address of a Redis, such as redis://127.0.0.1:6379/0")
    limits = {
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": WORKER_REPLY_TIMEOUT_S if for_worker else REPLY_TIMEOUT_S,
        "retry": Retry(NoBackoff(), 0 if for_worker else 1),
    }
    try:
        pool: Any = pool_by_sentinels(url, **limits) if is_sentinel_url(url) else _pool(url, **limits)
        # Made to see that it can be made: an option that there is not would fail every request.
        pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError, redis.RedisError):
        # The error's own text may quote a part of the password.
        raise SettingsError(
            "AJ_REDIS_URL cannot be understood; its form is redis://user:password@host:6379/0, with %XX for special "
            "characters in the password, and docs/store.md lists the others"
        ) from None
    client = Client(connection_pool=pool)
    client.auto_close_connection_pool = True
    if not for_worker:
        # One connection is for the subscription.
        client.breaker = Breaker(max(1, min(MOST_ASKERS, pool.max_connections - 1)))
    if client.get_encoder().decode_responses:
        raise SettingsError("AJ_REDIS_URL asks for decode_responses, with which RQ cannot work: leave it out")
    return client


def _pool(url: str, **limits: Any) -> redis.ConnectionPool:
    return redis.ConnectionPool.from_url(url, **limits)


@contextmanager
def errors_converted(breaker: Breaker | None = None) -> Iterator[None]:
    """Turns whatever redis-py raises into `StoreUnavailable`, the cause kept for the log."""
    with nullcontext() if breaker is None else breaker:
        if breaker is not None and not breaker.lets_through():
            raise StoreUnavailable(AWAY)
        try:
            yield
        except redis.RedisError as error:
            if breaker is not None:
                breaker.note(timed_out=isinstance(error, redis.TimeoutError))
            log.warning("the store cannot be used: %s: %s", type(error).__name__, error)
            raise StoreUnavailable(AWAY) from error
        if breaker is not None:
            breaker.note(timed_out=False)


def is_wrong_type(error: BaseException | None) -> bool:
    """Whether a command met a key of another type than ours or RQ's: one job is broken, and the store is well."""
    return isinstance(error, redis.ResponseError) and "WRONGTYPE" in str(error)


def patiently(ask: Callable[[], Reply], for_s: float) -> Reply:
    """Calls `ask` until it answers, with growing pauses, for `for_s` seconds at most.

    For what must not be lost, such as a job's outcome. `ask` must be safe to repeat.

    Raises: StoreUnavailable: the store did not come back in time, or the job's keys are broken, which stays so; the
    second try tells, since the first may have done what matters before it met them.
    """
    deadline_s, pause_s, broken = monotonic_s() + for_s, 0.05, False
    while True:
        try:
            return ask()
        except StoreUnavailable as error:
            if monotonic_s() + pause_s > deadline_s or (broken and is_wrong_type(error.__cause__)):
                raise
            broken = is_wrong_type(error.__cause__)
        threading.Event().wait(pause_s)
        pause_s = min(2.0, pause_s * 2)
