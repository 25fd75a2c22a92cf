"""The store stops, freezes, fills up or turns read-only: callers get a quick and honest 503, and later all is well."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from aj.clock import monotonic_s
from aj.errors import StoreUnavailable
from aj.job import Submission, new_job_id
from aj.local.embedded import ServerProcess, start_server
from aj.local.server import socket_of
from aj.store import Place, Verdict
from tests.conftest import Deployment
from tests.support.cutting_proxy import cutting_proxy
from tests.support.inside import jobs_of
from tests.support.jobs import document, run, submit, work_off
from tests.support.own_store import all_that_is_stored, deployment_on
from tests.support.waiting import wait_until

LONGEST_S = 3.0  # the contract's bound for a 503


@dataclass(slots=True)
class Breakable:
    """A deployment on a server of its own that can be stopped and started again."""

    server: ServerProcess
    deployment: Deployment

    def restart(self) -> None:
        self.server = start_server(self.server.folder)

    def config(self, **options: str) -> None:
        for name, value in options.items():
            self.deployment.redis.config_set(name.replace("_", "-"), value)

    def follow_nobody(self, **options: str) -> None:
        """Makes the server the replica of a master that is not there."""
        self.config(**options)
        self.deployment.redis.replicaof("127.0.0.1", "1")

    def lead(self) -> None:
        self.deployment.redis.replicaof("NO", "ONE")


@pytest.fixture
def store_alone(tmp_path: Path) -> Iterator[Breakable]:
    server = start_server(tmp_path / "store")
    breakable = Breakable(server, deployment_on(server))
    yield breakable
    breakable.server.stop()


Step = Callable[[Breakable], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """How to break a store and mend it, and whether it can still be read meanwhile."""

    break_it: Step
    mend_it: Step
    readable: bool


FAULTS = {
    "stopped": Fault(lambda it: it.server.stop(), Breakable.restart, readable=False),
    "killed": Fault(lambda it: it.server.kill(), Breakable.restart, readable=False),
    "frozen": Fault(
        lambda it: os.kill(it.server.pid, signal.SIGSTOP),
        lambda it: os.kill(it.server.pid, signal.SIGCONT),
        readable=False,
    ),
    "out of memory": Fault(lambda it: it.config(maxmemory="1"), lambda it: it.config(maxmemory="0"), readable=True),
    "read-only": Fault(Breakable.follow_nobody, Breakable.lead, readable=True),
    "cut off from its master": Fault(
        lambda it: it.follow_nobody(replica_serve_stale_data="no"),
        Breakable.lead,
        readable=False,
    ),
}


def assert_unavailable(answer: TestResponse) -> None:
    """503, and when to try again."""
    assert answer.status_code == 503
    assert answer.content_type == "application/problem+json"
    assert (answer.json or {})["type"].endswith("store-unavailable")
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_store_that_cannot_be_used_is_a_quick_503(store_alone: Breakable, fault: Fault) -> None:
    """Submissions and, where the store cannot be read, status requests; never 404, 410 or 500.

    Old connections and new ones alike. When the store is well again, so are all clients, and the key of a
    submission that was answered 503 can be used.
    """
    deployment = store_alone.deployment
    client = deployment.client()
    # Not made in the threads: Python 3.11 does not parse in two of them at a time, as a route does that is added.
    new, another_new = deployment.client(), deployment.client()
    location = f"/jobs/{submit(client, n=5)}"
    requests: list[Callable[[], TestResponse]] = [
        lambda: client.post("/jobs", json={"n": 5}),
        lambda: new.post("/jobs", json={"n": 6}, headers={"Idempotency-Key": "k"}),
        lambda: client.get(location),
        lambda: another_new.get(location),
        lambda: client.get("/jobs/018f2b5e-0000-7000-8000-000000000000"),
    ]
    fault.break_it(store_alone)
    try:
        with ThreadPoolExecutor(len(requests)) as pool:
            answers = list(pool.map(timed, requests))
    finally:
        fault.mend_it(store_alone)
    assert max(took_s for _, took_s in answers) < LONGEST_S
    for answer, _ in answers if not fault.readable else answers[:2]:
        assert_unavailable(answer)
    if fault.readable:
        assert [answer.status_code for answer, _ in answers[2:]] == [200, 200, 404]
    wait_until(lambda: client.get(location).status_code == 200, what="the client's recovery")
    assert document(client, submit(client, key="k", n=6))["status"] == "queued"


def timed(request: Callable[[], TestResponse]) -> tuple[TestResponse, float]:
    start_s = monotonic_s()
    return request(), monotonic_s() - start_s


@pytest.mark.parametrize("name", ["out of memory", "read-only"])
def test_a_submission_that_the_store_refuses_leaves_nothing(store_alone: Breakable, name: str) -> None:
    """Not even a part of what it would have written."""
    before = all_that_is_stored(store_alone.deployment)
    FAULTS[name].break_it(store_alone)
    answer = store_alone.deployment.client().post("/jobs", json={"n": 5}, headers={"Idempotency-Key": "k"})
    assert_unavailable(answer)
    FAULTS[name].mend_it(store_alone)
    assert all_that_is_stored(store_alone.deployment) == before


def test_a_submission_that_was_answered_503_is_not_carried_out_when_the_store_thaws(store_alone: Breakable) -> None:
    """The store reads late what was sent to it, and sees that it is late; the caller's retry is the one job."""
    client = store_alone.deployment.client()
    submit(client, n=1)
    FAULTS["frozen"].break_it(store_alone)
    answer = client.post("/jobs", json={"n": 5}, headers={"Idempotency-Key": "k"})
    FAULTS["frozen"].mend_it(store_alone)
    assert_unavailable(answer)
    retried = {"json": {"n": 5}, "headers": {"Idempotency-Key": "k"}}
    wait_until(store_alone.deployment.redis.ping, what="a store that has thawed")
    assert store_alone.deployment.queued() == 1
    wait_until(lambda: client.post("/jobs", **retried).status_code == 202, what="the client's recovery")
    job_id = submit(client, key="k", n=5)
    assert submit(client, key="k", n=5) == job_id
    assert store_alone.deployment.queued() == 2
    work_off(store_alone.deployment)
    assert document(client, job_id)["result"] == 25


@pytest.mark.parametrize("key", [None, "k"])
def test_a_lost_reply_is_asked_for_again_and_queues_once(store_alone: Breakable, key: str | None) -> None:
    """The store carried the command out and the connection died: the caller sees a plain 202, and there is one job."""
    deployment = store_alone.deployment
    with cutting_proxy(socket_of(store_alone.server.folder)) as proxy:
        client = deployment.client(AJ_REDIS_URL=proxy.url)
        submit(client, n=1)
        proxy.replies_to_lose = 1
        job_id = submit(client, key=key, n=5)
        assert proxy.replies_to_lose == 0
        assert document(client, job_id)["status"] == "queued"
    assert deployment.queued() == 2


def test_a_lost_reply_to_a_status_request_is_asked_for_again(store_alone: Breakable) -> None:
    """A failover between two polls is not shown to the caller."""
    with cutting_proxy(socket_of(store_alone.server.folder)) as proxy:
        client = store_alone.deployment.client(AJ_REDIS_URL=proxy.url)
        job_id = submit(client, n=5)
        proxy.replies_to_lose = 1
        assert document(client, job_id)["status"] == "queued"


def test_replies_that_are_lost_again_and_again_are_a_503(store_alone: Breakable) -> None:
    """One more try is made, not many."""
    with cutting_proxy(socket_of(store_alone.server.folder)) as proxy:
        client = store_alone.deployment.client(AJ_REDIS_URL=proxy.url)
        submit(client, n=1)
        proxy.replies_to_lose = 100
        assert_unavailable(client.post("/jobs", json={"n": 5}))


def test_a_store_that_forgot_its_scripts_is_taught_again(store_alone: Breakable) -> None:
    """After a restart or a failover the digests mean nothing to the server."""
    deployment: Deployment = store_alone.deployment
    client: FlaskClient = deployment.client()
    submit(client, n=1)
    deployment.redis.script_flush()
    assert run(deployment, client, n=5)["result"] == 25


def test_a_wrong_idea_of_the_stores_clock_costs_one_answer(deployment: Deployment) -> None:
    """As after the store's clock was set back and forth: the next submission is judged by a new idea, or by none."""
    jobs = jobs_of(deployment)
    jobs._ahead_ms = -3_600_000
    place = Place(deployment.queue, timeout_s=10, result_ttl_s=10, max_queued=10)
    with pytest.raises(StoreUnavailable):
        jobs.submit(new_job_id(1), Submission("square", {"n": 5}), place, None)
    assert deployment.queued() == 0
    assert jobs.submit(new_job_id(1), Submission("square", {"n": 5}), place, None).verdict is Verdict.CREATED
    assert abs(jobs._ahead_ms or 0) < 1000
