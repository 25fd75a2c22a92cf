"""Which keys of a deployment stay in the store for ever. Looks and changes nothing."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import redis

INDEXES = ("active", "leases", "delayed", "ended", "expiring", "out:hosts", "out:due", "out:pending")


def leaked_keys(client: redis.Redis, prefix: str) -> list[str]:
    """Keys without a time to live that `aj/store/keys.py` does not allow to have none."""
    found: Any = client.scan_iter(f"{prefix}:*", count=1000)
    return [key.decode() for key in sorted(set(found)) if client.ttl(key) == -1 and not _may_stay(client, key, prefix)]


def _may_stay(client: redis.Redis, key: bytes, prefix: str) -> bool:
    """Active jobs, pending deliveries, and the sorted sets that list them."""
    kind = key.decode().removeprefix(f"{prefix}:")
    if kind.startswith("job:"):
        return client.hget(key, "status") in (b"queued", b"running")
    if kind.startswith("out:job:"):
        return client.hget(key, "state") is None
    return kind.startswith(tuple(f"{each}:" for each in INDEXES)) or kind in INDEXES


def left_over(client: redis.Redis, prefix: str) -> Counter[str]:
    """What stands in the store for jobs, ours and RQ's, by kind of key: nothing, once all have expired.

    What is remembered of a task, a queue, a worker or a host is not a job's.
    """
    ours = tuple(f"{prefix}:{each}" for each in ("pace:", "metrics", "tally:", "out:answers:"))
    kept = (*ours, "rq:worker", "rq:queues", "rq:clean")
    found: Any = client.scan_iter(count=1000)
    keys = [key.decode(errors="replace") for key in set(found)]
    return Counter(re.sub(r"[0-9a-f-]{36}|\d{8}$|[0-9a-f]{64}", "…", key) for key in keys if not key.startswith(kept))
