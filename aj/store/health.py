"""Whether the store is fit to keep what we promise, and whether anybody works there.

Asks and judges; mends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from redis.sentinel import MasterNotFoundError
from rq.suspension import WORKERS_SUSPENDED
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from aj.errors import SettingsError, StoreUnavailable
from aj.store.client import Client, errors_converted
from aj.store.keys import WORKER_FIELD, Keys
from aj.store.replies import replies_of
from aj.store.rq_classes import MIN_REDIS
from aj.store.scripts import Script

SOUND_POLICY = "noeviction"
RQ_PROBE = "rq:aj:probe"
SUSPENDED = "workers take no job since `rq suspend`; `rq resume` lets them go on"
MEANINGS: dict[type[redis.RedisError], str] = {
    redis.exceptions.AuthenticationError: "refuses the user or the password",
    redis.exceptions.NoPermissionError: "does not permit the user what is needed",
    redis.exceptions.BusyLoadingError: "is loading its data",
    redis.exceptions.MasterDownError: "is a replica that has lost its master",
    MasterNotFoundError: "has no master at the moment",
    redis.exceptions.OutOfMemoryError: "is out of memory",
    redis.exceptions.ReadOnlyError: "is a read-only replica",
}
# Inside a script the store speaks of access rules in words of its own, and before 7.0 its codes come late.
DENIED_IN_SCRIPT = ("ACL failure in script", "The user executing the script can't")
CODES: dict[str, type[redis.RedisError]] = {
    "NOPERM": redis.exceptions.NoPermissionError,
    "MASTERDOWN": redis.exceptions.MasterDownError,
    "OOM": redis.exceptions.OutOfMemoryError,
    "READONLY": redis.exceptions.ReadOnlyError,
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
            look = _look(client, keys, queues)
    except StoreUnavailable as unavailable:
        return {"store": _in_words(unavailable.__cause__)}
    wrong: dict[str, str] = {}
    if look.refusal is not None:
        wrong["store"] = _in_words(look.refusal)
    elif look.info.get("role") not in ("master", None):
        wrong["store"] = "is a replica"
    policy = look.info.get("maxmemory_policy", SOUND_POLICY)
    if policy != SOUND_POLICY:
        wrong["eviction"] = f"maxmemory-policy is {policy}; it must be {SOUND_POLICY}"
    idle = [queue for queue, living in zip(queues, look.alive, strict=True) if not living]
    if idle:
        wrong["workers"] = f"no worker is alive for {', '.join(idle)}"
    if look.is_suspended:
        wrong["suspended"] = SUSPENDED
    return wrong


@dataclass(frozen=True, slots=True)
class _Look:
    """What the store says of itself; what it refused of what we need, if it did; whether each queue has a worker, and
    whether RQ's workers are suspended.
    """

    info: dict[str, Any]
    refusal: redis.RedisError | None
    alive: list[bool]
    is_suspended: bool


def _look(client: Client, keys: Keys, queues: Sequence[str]) -> _Look:
    with client.pipeline(transaction=False) as pipe:
        pipe.info()
        pipe.exists(WORKERS_SUSPENDED)
        for queue in queues:
            pipe.smembers(WORKERS_BY_QUEUE_KEY % queue)
        Script(client, "probe").put_into(pipe, [keys.probe, RQ_PROBE])
        # How RQ sends some commands in one step, and takes a job, which within such a step does not wait for one.
        for words in (("MULTI",), ("BLMOVE", RQ_PROBE, RQ_PROBE, "LEFT", "RIGHT", 1), ("EXEC",)):
            pipe.execute_command(*words)  # type: ignore[no-untyped-call]
        replies = pipe.execute(raise_on_error=False)
        asked, tried = replies[: 2 + len(queues)], replies[2 + len(queues) :]
        for reply in asked:
            if isinstance(reply, redis.RedisError):
                raise reply
        info, suspended, *workers = asked
        for name in (name for names in workers for name in names):
            pipe.hget(name, WORKER_FIELD)
        signs = (whose == keys.prefix.encode() for whose in replies_of(pipe))  # what is no hash is no worker
        refusal = next((each for each in tried if isinstance(each, redis.RedisError)), None)
        return _Look(info, refusal, [sum(next(signs) for _ in names) > 0 for names in workers], bool(suspended))


def _in_words(error: BaseException | None) -> str:
    """What an error of the store means for an operator. None is a store that hung a moment ago."""
    if error is None or isinstance(error, redis.TimeoutError):
        return "does not answer in time"
    code = _code(str(error))
    for kind, meaning in MEANINGS.items():
        if isinstance(error, kind) or CODES.get(code) is kind:
            return meaning
    if isinstance(error, redis.ConnectionError):
        return "cannot be reached"
    return f"refuses to work: {code}"


def _code(text: str) -> str:
    """The word with which the store names an error; it may stand behind the place, or behind what failed with it."""
    if any(words in text for words in DENIED_IN_SCRIPT):
        return "NOPERM"
    inside = re.search(r": -?([A-Z]{3,}) ", text)
    return inside[1] if inside else text.split(" ", 1)[0]
