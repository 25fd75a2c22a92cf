"""Whether the store is fit to keep what we promise, and whether anybody works there.

Asks and judges; mends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from aj.errors import SettingsError
from aj.store.client import Client
from aj.store.rq_classes import MIN_REDIS

SOUND_POLICY = "noeviction"


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


def unready_because(client: Client, queues: Sequence[str]) -> dict[str, str]:
    """What is wrong, by the name of the check; empty where all is well. Asks three times at most."""
    try:
        info: Any = client.info()
        with client.pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.smembers(WORKERS_BY_QUEUE_KEY % queue)
            workers = [sorted(each) for each in pipe.execute()]
            for name in (name for names in workers for name in names):
                pipe.exists(name)
            signs = iter(pipe.execute())
            alive = [[next(signs) for _ in names] for names in workers]
    except redis.RedisError as error:
        return {"store": f"cannot be used: {type(error).__name__}"}
    wrong: dict[str, str] = {}
    if info.get("role") not in ("master", None):
        wrong["store"] = "is a read-only replica"
    policy = info.get("maxmemory_policy", SOUND_POLICY)
    if policy != SOUND_POLICY:
        wrong["eviction"] = f"maxmemory-policy is {policy}; it must be {SOUND_POLICY}"
    idle = [queue for queue, living in zip(queues, alive, strict=True) if not any(living)]
    if idle:
        wrong["workers"] = f"no worker is alive for {', '.join(idle)}"
    return wrong
