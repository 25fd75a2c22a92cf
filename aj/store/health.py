"""Whether the store is fit to keep what we promise, and whether anybody works there.

Asks and judges; mends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
from redis.sentinel import MasterNotFoundError
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from aj.errors import SettingsError, StoreUnavailable
from aj.store.client import Client, errors_converted
from aj.store.keys import WORKER_FIELD, Keys
from aj.store.rq_classes import MIN_REDIS

SOUND_POLICY = "noeviction"
# Set only where it exists, and it never does: the store judges the command as a write, and nothing is written.
PROBE = "rq:aj:probe"
MEANINGS: dict[type[redis.RedisError], str] = {
    redis.exceptions.AuthenticationError: "refuses the user or the password",
    redis.exceptions.NoPermissionError: "does not permit the user what is needed",
    redis.exceptions.BusyLoadingError: "is loading its data",
    redis.exceptions.MasterDownError: "is a replica that has lost its master",
    MasterNotFoundError: "has no master at the moment",
    redis.exceptions.OutOfMemoryError: "is out of memory",
    redis.exceptions.ReadOnlyError: "is a read-only replica",
}


def refuse_unfit(client: Client) -> None:
    """Refuses a store that would lose jobs, before anything is promised; one that is away is not judged yet.

    Raises: SettingsError: too old, a cluster, or set to evict keys; the message says what mends it.
    """
    try:
        info: Any = client.info()
    except redis.RedisError:
        return
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:3]) < MIN_REDIS:
        raise SettingsError(f"the store at AJ_REDIS_URL is version {version}; RQ needs 6.2 or newer")
    if info.get("cluster_enabled"):
        raise SettingsError(
            "the store at AJ_REDIS_URL is a Redis Cluster, on which RQ cannot work; use a single server"
        )
    policy = str(info.get("maxmemory_policy", SOUND_POLICY))
    if policy != SOUND_POLICY:
        raise SettingsError(
            f"the store at AJ_REDIS_URL may throw keys away (maxmemory-policy is {policy}), and with them jobs that "
            f"were accepted; mend it with: redis-cli CONFIG SET maxmemory-policy {SOUND_POLICY}"
        )


def unready_because(client: Client, keys: Keys, queues: Sequence[str]) -> dict[str, str]:
    """What is wrong, by the name of the check; empty where all is well. Asks twice at most, so that it ends in 3 s."""
    try:
        # Through the breaker: a store that hangs must not hold a thread for each probe.
        with errors_converted(client.breaker):
            info, written, alive = _looked_at(client, keys, queues)
    except StoreUnavailable as unavailable:
        return {"store": _in_words(unavailable.__cause__)}
    wrong: dict[str, str] = {}
    if isinstance(written, redis.RedisError):
        wrong["store"] = _in_words(written)
    elif info.get("role") not in ("master", None):
        wrong["store"] = "is a replica"
    policy = info.get("maxmemory_policy", SOUND_POLICY)
    if policy != SOUND_POLICY:
        wrong["eviction"] = f"maxmemory-policy is {policy}; it must be {SOUND_POLICY}"
    idle = [queue for queue, living in zip(queues, alive, strict=True) if not living]
    if idle:
        wrong["workers"] = f"no worker is alive for {', '.join(idle)}"
    return wrong


def _looked_at(client: Client, keys: Keys, queues: Sequence[str]) -> tuple[dict[str, Any], Any, list[bool]]:
    """What the store says of itself, what came of an attempt to write, and for each queue whether it has a worker."""
    with client.pipeline(transaction=False) as pipe:
        pipe.info()
        pipe.set(PROBE, 1, xx=True)
        for queue in queues:
            pipe.smembers(WORKERS_BY_QUEUE_KEY % queue)
        info, written, *workers = pipe.execute(raise_on_error=False)
        for reply in (info, *workers):
            if isinstance(reply, redis.RedisError):
                raise reply
        for name in (name for names in workers for name in names):
            pipe.hget(name, WORKER_FIELD)
        signs = (whose == keys.prefix.encode() for whose in pipe.execute())
        return info, written, [sum(next(signs) for _ in names) > 0 for names in workers]


def _in_words(error: BaseException | None) -> str:
    """What an error of the store means for an operator. None is a store that hung a moment ago."""
    if error is None or isinstance(error, redis.TimeoutError):
        return "does not answer in time"
    for kind, meaning in MEANINGS.items():
        if isinstance(error, kind):
            return meaning
    if isinstance(error, redis.ConnectionError):
        return "cannot be reached"
    return f"refuses to work: {str(error).split(' ', 1)[0]}"
