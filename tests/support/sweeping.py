"""Sweeps inside a test, and workers that are heard of no more."""

from __future__ import annotations

from typing import Any

from aj import clock
from aj.egress import host_of
from aj.registry import Registry
from aj.store import Jobs, Keys, Recovery, connect
from aj.worker.rq_worker import Worker
from aj.worker.sweep import Sweep
from tests.conftest import Deployment


def make_sweep(deployment: Deployment, in_touch_for_s: float = 3600) -> Sweep:
    """A sweep that has been in touch with the store for as long as it is told."""
    settings = deployment.settings
    client, keys = connect(settings.redis_url, for_worker=True), Keys(settings.prefix)
    registry = Registry.load(settings.tasks)
    sweep = Sweep(settings, registry, Jobs(client, keys), Recovery(client, keys), host_of)
    sweep._in_touch_since_s = clock.monotonic_s() - in_touch_for_s
    return sweep


def take_and_vanish(deployment: Deployment) -> Worker:
    """A worker that takes the next job and is then heard of no more: its lease is over."""
    worker = deployment.worker()
    worker.see_through = lambda *_, **__: None  # type: ignore[method-assign]
    assert worker.work_once()
    lapse(deployment)
    return worker


def lapse(deployment: Deployment) -> None:
    """All leases of the deployment are over."""
    key = Keys(deployment.settings.prefix).leases
    running: Any = deployment.redis.zrange(key, 0, -1)
    for job_id in running:
        deployment.redis.zadd(key, {job_id: 1})


def let_a_minute_pass(deployment: Deployment) -> None:
    """What expires within a minute is filed as if that minute were over."""
    keys = Keys(deployment.settings.prefix)
    minutes: Any = deployment.redis.zrange(keys.expiring, 0, -1, withscores=True)
    now: Any = deployment.redis.time()
    for past, (minute, number) in enumerate(minutes, 1):
        if number <= now[0] // 60 + 2:
            deployment.redis.zrem(keys.expiring, minute)
            deployment.redis.zadd(keys.expiring, {str(past): past})
            deployment.redis.rename(f"{keys.expiring}:{minute.decode()}", f"{keys.expiring}:{past}")
