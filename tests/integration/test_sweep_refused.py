"""A store that can be read and not be written: no worker could renew its lease, so no sweep may judge by it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aj import clock
from aj.errors import StoreUnavailable
from aj.store import Keys, Recovery, connect
from tests.conftest import Deployment
from tests.support.inside import starts, wait_for_end
from tests.support.jobs import document, submit
from tests.support.own_store import own_deployment
from tests.support.processes import running_worker
from tests.support.sweeping import make_sweep, take_and_vanish
from tests.support.waiting import wait_until

LEASE_S = 4
Step = Callable[[Deployment], object]


def allow(deployment: Deployment, rule: str) -> None:
    client: Any = deployment.redis
    client.execute_command("ACL", "SETUSER", "default", rule)


REFUSALS: dict[str, tuple[Step, Step]] = {
    "out of memory": (
        lambda it: it.redis.config_set("maxmemory", 1),
        lambda it: it.redis.config_set("maxmemory", 0),
    ),
    "read-only": (lambda it: it.redis.replicaof("127.0.0.1", "1"), lambda it: it.redis.replicaof("NO", "ONE")),
    "an ACL without zadd": (
        lambda it: allow(it, "-zadd"),
        lambda it: allow(it, "+zadd"),
    ),
    "an ACL without hmget": (
        lambda it: allow(it, "-hmget"),
        lambda it: allow(it, "+hmget"),
    ),
}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Deployment]:
    with own_deployment(tmp_path / "store", AJ_LEASE_S=str(LEASE_S), AJ_WORKERS="1") as made:
        yield made


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_sweep_that_was_refused_what_a_heartbeat_needs_judges_nobody_for_a_lease(
    own: Deployment, refusal: str
) -> None:
    """One look that fails is enough, and every sweep has its own; a lease later who does not beat is judged."""
    break_it, mend_it = REFUSALS[refusal]
    client = own.client()
    job_id = submit(client, n=3)
    take_and_vanish(own)
    sweep = make_sweep(own)
    break_it(own)
    with pytest.raises(StoreUnavailable):
        sweep.once()
    sweep(OneRound())
    mend_it(own)
    sweep.once()
    assert document(client, job_id)["status"] == "running"
    sweep._in_touch_since_s -= own.settings.lease_s + 1
    sweep.once()
    assert document(client, job_id)["error"]["type"] == "lost"


class OneRound(threading.Event):
    """Lets a sweep work once, without a pause."""

    rounds = 1

    def wait(self, timeout: float | None = None) -> bool:
        self.rounds -= 1
        return self.rounds < 0


def test_a_look_writes_nothing(own: Deployment) -> None:
    """Neither where there are leases nor where there are none."""
    recovery = Recovery(connect(own.settings.redis_url, for_worker=True), Keys(own.settings.prefix))
    recovery.look()
    assert own.keys() == []
    submit(own.client(), n=3)
    take_and_vanish(own)
    leases = Keys(own.settings.prefix).leases
    before = own.redis.dump(leases)
    recovery.look()
    assert own.redis.dump(leases) == before


def test_jobs_of_living_workers_outlast_a_store_that_is_full_for_longer_than_the_lease(
    own: Deployment, folder: Path
) -> None:
    """One task that runs at most once, one with retries: each ends with its own result after a single run."""
    once, again = folder / "once", folder / "again"
    tasks = {"AJ_TASKS": "tests.support.tasks,tests.support.tasks_again"}
    client, leases = own.client(**tasks), Keys(own.settings.prefix).leases
    with running_worker({**own.env, **tasks}, folder), running_worker({**own.env, **tasks}, folder):
        ids = [submit(client, task="wait_for_file", path=str(once)), submit(client, task="wait_again", path=str(again))]
        wait_until(lambda: starts(once) and starts(again), what="two running jobs")
        own.redis.config_set("maxmemory", 1)
        wait_until(lambda: own.redis.zcount(leases, "-inf", clock.now_ms()) == 2, what="leases that are over")
        own.redis.config_set("maxmemory", 0)
        wait_until(lambda: own.redis.zcount(leases, "-inf", clock.now_ms()) == 0, what="leases that are renewed")
        once.touch()
        again.touch()
        assert [wait_for_end(client, each).get("result") for each in ids] == ["seen", "seen"]
        assert [len(starts(path)) for path in (once, again)] == [1, 1]
