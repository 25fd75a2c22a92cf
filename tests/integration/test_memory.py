"""What a job takes of the store's memory, in its keys and in the indexes it stands in, and what is left of many.

Bytes are those of `MEMORY USAGE`; bounds leave room for other versions and allocators (measured: docs/store.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from aj.store import Keys
from tests.conftest import Deployment
from tests.soak.scene import SHORT_LIVES, submit_mixed
from tests.support.jobs import submit, work_off
from tests.support.leaks import left_over
from tests.support.own_store import own_deployment
from tests.support.sweeping import let_a_minute_pass, make_sweep
from tests.support.waiting import wait_until

JOBS = 300


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Deployment]:
    with own_deployment(tmp_path / "store") as deployment:
        yield deployment


def bytes_of(store: Any) -> int:
    """All keys of the store, with all that they hold."""
    return sum(store.memory_usage(key, samples=0) for key in store.scan_iter(count=1000))


def per_job(deployment: Deployment, change: Callable[[], None]) -> tuple[float, float]:
    """How many bytes and keys more there are for each of the jobs of a change."""
    before = bytes_of(deployment.redis), deployment.redis.dbsize()
    change()
    after = bytes_of(deployment.redis), deployment.redis.dbsize()
    return (after[0] - before[0]) / JOBS, round((after[1] - before[1]) / JOBS, 1)


def submit_many(deployment: Deployment) -> None:
    client = deployment.client()
    for _ in range(JOBS):
        submit(client, n=5)


def expire(deployment: Deployment) -> None:
    """As the store and a sweep would, a day later."""
    store: Any = deployment.redis
    keys = Keys(deployment.settings.prefix)
    for pattern in (f"{keys.prefix}:job:*", "rq:job:*"):
        store.delete(*store.scan_iter(pattern, count=1000))
    for listed in (keys.expiring, *store.scan_iter(f"{keys.expiring}:*"), keys.ended("succeeded")):
        store.delete(listed)
    store.zremrangebyscore(f"rq:finished:{deployment.queue}", "-inf", "+inf")


def test_a_job_takes_little_of_the_store_while_it_waits_after_its_end_and_when_it_has_expired(
    alone: Deployment,
) -> None:
    """Two keys while it waits, three once it has ended, one when it has expired."""
    submit_many(alone)
    work_off(alone)
    waiting, keys = per_job(alone, lambda: submit_many(alone))
    assert (waiting <= 800, keys) == (True, 2), waiting
    before = bytes_of(alone.redis)
    work_off(alone)
    ended = waiting + (bytes_of(alone.redis) - before) / JOBS
    assert ended <= 1100, ended
    expire(alone)
    left = bytes_of(alone.redis) / (2 * JOBS)
    assert left <= 120, left
    assert len(alone.keys("tomb:*")) == alone.redis.dbsize() - len(shared_keys(alone)) == 2 * JOBS


def shared_keys(deployment: Deployment) -> list[bytes]:
    """What there is once for all jobs, however many."""
    found: list[bytes] = [key for key in deployment.redis.scan_iter() if b":tomb:" not in key]
    return found


def test_the_hashes_of_a_job_stay_compact(alone: Deployment) -> None:
    """From its submission to its end; else they would take half as much again, or more."""
    client = alone.client()
    text = "x" * 500
    job_id = submit(client, n=5, metadata={"note": text}, callback_url=f"http://127.0.0.1/{text}")
    failing_id = submit(client, task="fail", text=text)
    for _ in range(2):
        for each in (job_id, failing_id):
            for key in (f"{alone.settings.prefix}:job:{each}", f"rq:job:{each}"):
                assert alone.redis.object("encoding", key) in (b"listpack", b"ziplist"), key
        work_off(alone)


def test_without_our_settings_a_small_job_is_compact_too(alone: Deployment) -> None:
    """A store that somebody else has set up converts a hash with a field of over 64 bytes."""
    alone.redis.config_set("hash-max-ziplist-value", 64)
    client = alone.client()
    ids = [submit(client, n=5), submit(client, task="fail", text="x")]
    work_off(alone)
    for job_id in ids:
        assert alone.redis.object("encoding", f"rq:job:{job_id}") in (b"listpack", b"ziplist")
    assert alone.redis.object("encoding", f"{alone.settings.prefix}:job:{ids[0]}") in (b"listpack", b"ziplist")


def test_rq_keeps_no_result_of_a_job(alone: Deployment) -> None:
    """Its stream would take 4 KiB for each job, whatever stands in it."""
    client = alone.client()
    submit(client, n=5)
    submit(client, task="fail", text="x")
    client.post(f"/jobs/{submit(client, n=6)}/cancel")
    work_off(alone)
    assert list(alone.redis.scan_iter("rq:results:*")) == []


def test_nothing_is_left_of_a_thousand_jobs_with_short_lives(tmp_path: Path) -> None:
    """No registry, no result, no execution, no index and no key; `python -m tests.soak` does it with a million."""
    with own_deployment(tmp_path / "store", **SHORT_LIVES) as deployment:
        client, worker, sweep = deployment.client(), deployment.worker(), make_sweep(deployment)
        for number in range(1000):
            submit_mixed(client, number)
            worker.work_once()
        work_off(deployment)
        worker.dismiss_horses()
        worker.register_death()  # type: ignore[no-untyped-call]
        _deliver_nothing(deployment.redis, Keys(deployment.settings.prefix))

        def is_empty() -> bool:
            let_a_minute_pass(deployment)
            sweep.once()
            return not left_over(deployment.redis, deployment.settings.prefix)

        wait_until(is_empty, what="an empty store")


def _deliver_nothing(store: redis.Redis, keys: Keys) -> None:
    """Takes the webhooks away that are owed: no deliverer runs here."""
    for key in (keys.hosts, keys.pending, keys.due("127.0.0.1")):
        store.delete(key)
    for key in store.scan_iter(keys.delivery("*")):
        store.delete(key)
