"""Neighbours in one store: the user's own RQ queues, and a second deployment with another prefix."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import rq
from flask.testing import FlaskClient
from rq.serializers import JSONSerializer

from tests.conftest import Deployment
from tests.support.deliveries import deliveries
from tests.support.inside import rq_hash
from tests.support.jobs import document, run, submit, work_off
from tests.support.processes import ROOT, clean_env
from tests.support.sweeping import make_sweep, take_and_vanish

HOOK = "http://127.0.0.1:9/hook"


def run_plain_worker(deployment: Deployment, queue: str) -> None:
    """RQ's own worker, as its user starts it, until the queue is empty."""
    command = [sys.executable, "-m", "rq.cli", "worker", queue, "--burst", "--url", deployment.env["AJ_REDIS_URL"]]
    subprocess.run(command, env=clean_env({}), cwd=ROOT, capture_output=True, check=True, timeout=30)


def stored(deployment: Deployment, *words: str) -> dict[bytes, bytes]:
    """Every key of RQ whose name holds one of `words`, as the server would write it to disk."""
    client: Any = deployment.redis
    keys = [key for key in client.scan_iter("rq:*", count=1000) if any(word.encode() in key for word in words)]
    return {key: client.dump(key) for key in keys}


# -- the user's own RQ ---------------------------------------------------------------------------------------


def test_the_users_own_queue_is_left_alone(deployment: Deployment, client: FlaskClient) -> None:
    """Jobs of plain RQ wait, have run and have failed in another queue, while ours run and are swept: none of it
    changes, and the user's worker runs what waits."""
    mine = rq.Queue(f"{deployment.queue}.mine", connection=deployment.redis)
    done, broken = mine.enqueue("os.path.join", "a", "b"), mine.enqueue("os.mkdir", "/no/such/folder")
    run_plain_worker(deployment, mine.name)
    waiting = mine.enqueue("os.path.join", "c", "d", meta={"who": "the user"})
    before = stored(deployment, mine.name, done.id, broken.id, waiting.id)
    assert len(before) >= 6
    assert run(deployment, client, n=5)["result"] == 25
    assert run(deployment, client, task="kill_itself")["error"]["type"] == "lost"
    sweep = make_sweep(deployment)
    sweep.once()
    sweep.once()
    assert stored(deployment, mine.name, done.id, broken.id, waiting.id) == before
    job_id = submit(client, n=6)
    run_plain_worker(deployment, mine.name)
    results = [(job.get_status(refresh=True), job.return_value(refresh=True)) for job in (done, broken, waiting)]
    assert results == [("finished", "a/b"), ("failed", None), ("finished", "c/d")]
    assert document(client, job_id)["status"] == "queued"
    work_off(deployment)
    assert document(client, job_id)["result"] == 36


def test_a_plain_worker_in_our_queue_leaves_no_job_queued_for_ever(deployment: Deployment, client: FlaskClient) -> None:
    """It cannot read our jobs and fails them on RQ's side; the caller learns that the job is lost."""
    job_id = submit(client, n=5, callback_url=HOOK)
    run_plain_worker(deployment, deployment.queue)
    assert rq_hash(deployment, job_id)[b"status"] == b"failed"
    assert_lost(deployment, client, job_id)


def test_a_job_that_is_cancelled_with_rqs_tools_is_lost(deployment: Deployment, client: FlaskClient) -> None:
    """They know nothing of ours; what can never run does not say `queued` for ever."""
    job_id = submit(client, n=5, callback_url=HOOK)
    rq.job.Job.fetch(job_id, connection=deployment.redis, serializer=JSONSerializer).cancel()
    assert_lost(deployment, client, job_id)


def assert_lost(deployment: Deployment, client: FlaskClient, job_id: str) -> None:
    """Two looks of a sweep end the job, with its webhook, and leave the one alone that waits beside it."""
    waiting = submit(client, n=6)
    sweep = make_sweep(deployment)
    sweep.once()
    assert document(client, job_id)["status"] == "queued"
    sweep.once()
    assert document(client, job_id)["error"]["type"] == "lost"
    assert len(deliveries(deployment)) == 1
    work_off(deployment)
    assert document(client, waiting)["result"] == 36


# -- two deployments -----------------------------------------------------------------------------------------


@pytest.fixture
def pair(deploy: Callable[..., Deployment]) -> tuple[Deployment, Deployment]:
    """Two deployments in one store that even share their queue; the second knows other tasks."""
    one = deploy()
    return one, deploy(AJ_QUEUES=one.queue, AJ_TASKS="tests.support.tasks_by_name")


def test_neither_sees_a_job_of_the_other(pair: tuple[Deployment, Deployment]) -> None:
    """By its id, in a list, or through anything that can be done to it."""
    here, there = (each.client() for each in pair)
    job_id = submit(here, n=5, callback_url=HOOK)
    for method, path in (
        ("GET", ""),
        ("GET", "/result"),
        ("GET", "/deliveries"),
        ("POST", "/deliveries"),
        ("POST", "/cancel"),
        ("DELETE", ""),
    ):
        answer = there.open(f"/jobs/{job_id}{path}", method=method)
        assert (answer.status_code, (answer.json or {})["type"]) == (404, "urn:problem-type:aj:job-unknown")
    lists = [(client.get("/jobs").json or {})["jobs"] for client in (here, there)]
    assert [[each["job_id"] for each in found] for found in lists] == [[job_id], []]
    assert document(here, job_id)["status"] == "queued"


def test_one_key_is_a_job_in_each(pair: tuple[Deployment, Deployment]) -> None:
    """Idempotency ends at the prefix, and so do the jobs that are counted ahead."""
    here, there = (each.client() for each in pair)
    ids = [submit(here, key="order-17", n=5), submit(there, key="order-17")]
    assert len(set(ids)) == 2
    assert [document(client, job_id)["position"] for client, job_id in zip((here, there), ids, strict=True)] == [1, 1]


def test_each_runs_its_own_jobs_from_a_queue_that_they_share(pair: tuple[Deployment, Deployment]) -> None:
    """Whichever worker takes a job first: it passes on what is the other's, and writes no webhook for it."""
    one, two = pair
    here, there = (each.client() for each in pair)
    mine, others = submit(here, n=5, callback_url=HOOK), submit(there, callback_url=HOOK)
    first, second = two.worker(), one.worker()
    for worker in (first, first, second):
        assert worker.work_once()
    assert one.queued() == 0
    assert document(here, mine)["result"] == 25
    assert document(there, others)["error"]["detail"] == "TaskError: nothing to be done"
    assert [len(deliveries(each)) for each in pair] == [1, 1]


def in_queue(deployment: Deployment) -> list[bytes]:
    entries: Any = deployment.redis.lrange(f"rq:queue:{deployment.queue}", 0, -1)
    return list(entries)


def pile_up(there: Deployment, client: FlaskClient, count: int) -> list[bytes]:
    """A backlog of `there`: one real job, and copies of its entry, since that is all that others see of it."""
    job_id = submit(client).encode()
    there.redis.rpush(f"rq:queue:{there.queue}", *[job_id] * (count - 1))
    return [job_id] * count


def test_a_backlog_of_the_other_holds_nobody_up(
    pair: tuple[Deployment, Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look of a worker of ours brings the next job of ours, in their order and without a pause; what is the
    other's stays where it is."""
    one, two = pair
    here, worker = one.client(), one.worker()
    monkeypatch.setattr(worker._stopping, "wait", lambda timeout: pytest.fail("a pause"))
    backlog = pile_up(two, two.client(), 400)
    mine = [submit(here, n=n) for n in (5, 6)]
    for job_id in mine:
        assert document(here, mine[-1])["status"] == "queued"
        assert worker.work_once()
        assert document(here, job_id)["status"] == "succeeded"
    assert in_queue(one) == backlog


def test_one_look_at_a_backlog_is_bounded(pair: tuple[Deployment, Deployment], monkeypatch: pytest.MonkeyPatch) -> None:
    """It covers a thousand entries and, where none is ours, is followed by a pause; the next one goes on from there."""
    one, two = pair
    here, worker = one.client(), one.worker()
    pauses: list[float] = []
    monkeypatch.setattr(worker._stopping, "wait", pauses.append)
    backlog = pile_up(two, two.client(), 2500)
    mine = [submit(here, n=n) for n in (5, 6)]
    for _ in range(3):
        worker.work_once()
    assert document(here, mine[0])["status"] == "succeeded"
    assert len(pauses) == 2
    worker.work_once()
    assert document(here, mine[1])["status"] == "succeeded"
    assert len(pauses) == 2
    assert in_queue(one) == backlog
    late = submit(here, n=7)
    one.redis.ltrim(f"rq:queue:{one.queue}", 2000, -1)
    worker.work_once()
    assert document(here, late)["status"] == "succeeded"


def test_neither_judges_a_job_of_the_other(pair: tuple[Deployment, Deployment]) -> None:
    """A sweep ends what is lost in its own deployment; what another worker took and has not started it leaves."""
    one, two = pair
    here = one.client()
    job_id = submit(here, n=5)
    take_and_vanish(one)
    for _ in range(3):
        make_sweep(two).once()
    assert document(here, job_id)["status"] == "running"
    make_sweep(one).once()
    assert document(here, job_id)["error"]["type"] == "lost"
