"""`python worker.py` as it is run: how it starts, what it serves, and how it stops without losing a job."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from flask.testing import FlaskClient

from aj.local.embedded import start_server
from aj.settings import Settings
from tests.conftest import Deployment
from tests.support.deliveries import deliveries, message
from tests.support.inside import is_alive, our_hash, rq_hash, rq_key, rq_leftovers, starts, wait_for_end
from tests.support.jobs import document, submit
from tests.support.processes import ROOT, Running, clean_env, running_worker
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

HOOK = "http://127.0.0.1:9/hook"


def registered(deployment: Deployment, queue: str) -> list[dict[bytes, bytes]]:
    """RQ's hashes of the workers that serve the queue."""
    keys: Any = deployment.redis.smembers(f"rq:workers:{queue}")
    return [dict(deployment.redis.hgetall(key)) for key in keys]  # type: ignore[arg-type]


def test_it_says_first_what_it_serves_and_where(deployment: Deployment, folder: Path) -> None:
    """So that whoever forgot a setting sees it."""
    with running_worker(deployment.env, folder) as worker:
        assert "aj.worker: tasks of tests.support.tasks: " in worker.output
        assert f"store: {deployment.settings.redis_url}" in worker.output


# -- stopping ------------------------------------------------------------------------------------------------


def test_an_idle_worker_stops_at_once(deployment: Deployment, folder: Path) -> None:
    """SIGTERM ends it with code 0, and RQ does not list it any more."""
    with running_worker(deployment.env, folder) as worker:
        assert len(registered(deployment, deployment.queue)) == 1
        assert worker.stop(within_s=10) == 0
        assert registered(deployment, deployment.queue) == []


def test_sigterm_lets_the_running_job_finish(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """The job under way comes to its end; the next one stays in the queue for another worker."""
    path = folder / "go"
    with running_worker(deployment.env, folder, "--only", "jobs") as worker:
        job_id = submit(client, task="wait_for_file", path=str(path))
        waiting = submit(client, n=2)
        wait_until(lambda: starts(path), what="a running job")
        worker.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in worker.output, what="a worker that stops")
        assert document(client, job_id)["status"] == "running"
        path.touch()
        assert worker.process.wait(10) == 0
    assert document(client, job_id)["result"] == "seen"
    assert document(client, waiting)["status"] == "queued"
    assert deployment.queued() == 1
    assert rq_leftovers(deployment, job_id, waiting) == []


def test_a_second_sigterm_ends_the_worker_at_once(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """With exit code 1, since a job was lost, and nothing of it runs on."""
    path = folder / "go"
    with running_worker(deployment.env, folder, "--only", "jobs") as worker:
        submit(client, task="wait_for_file", path=str(path))
        [horse] = wait_until(lambda: starts(path), what="a running job")
        children = worker.children()
        worker.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in worker.output, what="a worker that stops")
        worker.process.send_signal(signal.SIGTERM)
        assert worker.process.wait(5) == 1
        wait_until(lambda: not any(map(is_alive, [horse, *children])), 5, "the end of all its processes")


def test_twenty_stops_under_load_strand_nothing(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """Stopped at any moment, also between taking a job and running it: each job waits or has ended, and ran once."""
    chance = random.Random(20261129)
    paths: dict[str, Path] = {}
    for _ in range(20):
        with running_child(deployment, folder) as worker:
            for _ in range(12):
                path = folder / f"job {len(paths)}"
                path.touch()
                paths[submit(client, task="wait_for_file", path=str(path))] = path
            threading.Event().wait(chance.uniform(0, 0.3))
            assert worker.stop() == 0
        assert rq_leftovers(deployment) == []
        ends = [our_hash(deployment, job_id)[b"status"] for job_id in paths]
        assert ends.count(b"queued") == deployment.queued()
        assert ends.count(b"queued") + ends.count(b"succeeded") == len(paths)
    with running_child(deployment, folder):
        wait_until(lambda: deployment.queued() == 0, 60, "an empty queue")
        assert {wait_for_end(client, job_id)["attempt"] for job_id in paths} == {1}
    assert {len(starts(path)) for path in paths.values()} == {1}


@contextmanager
def running_child(deployment: Deployment, folder: Path) -> Iterator[Running]:
    """One RQ worker process without the fleet around it, which the stops do not need."""
    command = [sys.executable, "-m", "aj.worker.child", "jobs", deployment.queue]
    log = folder / f"child {random.random()}.log"
    worker = Running(command, deployment.env, log, ROOT)
    try:
        wait_until(lambda: "Listening on" in worker.output, what="a worker that listens")
        yield worker
    finally:
        worker.stop()


# -- what it serves ------------------------------------------------------------------------------------------


def test_only_jobs_leaves_the_webhooks_to_others(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, folder: Path
) -> None:
    """The job runs, its webhook is owed, and a process that does only deliveries brings it."""
    with running_worker(deployment.env, folder, "--only", "jobs") as worker:
        assert len(worker.children()) == 2, "jobs and sweep"
        job_id = submit(client, n=5, callback_url=receiver.url())
        assert wait_for_end(client, job_id)["result"] == 25
    assert receiver.received == []
    assert message(deployment, job_id)["type"] == "job.succeeded"
    with running_worker(deployment.env, folder, "--only", "deliveries") as deliverer:
        waiting = submit(client, n=6)
        wait_until(lambda: receiver.received, what="the webhook")
        assert len(deliverer.children()) == 2, "deliveries and sweep"
        assert document(client, waiting)["status"] == "queued"
        wait_until(lambda: document(client, job_id)["callback"]["state"] == "delivered", what="its record")


def test_each_rq_worker_serves_one_queue(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """Two queues with two workers each are four processes, and the jobs of both queues run."""
    queues = [deployment.queue, f"{deployment.queue}.second"]
    env = {**deployment.env, "AJ_QUEUES": ",".join(queues), "AJ_WORKERS": "2"}
    with running_worker(env, folder) as worker:
        wait_until(lambda: worker.output.count("Listening on") == 4, what="four workers that listen")
        assert len(worker.children()) == 6, "four for jobs, one for deliveries, one for the sweep"
        for queue in queues:
            assert [each[b"queues"].decode() for each in registered(deployment, queue)] == [queue, queue]
        second = deployment.client(AJ_QUEUES=queues[1])
        job_ids = [submit(each, n=3) for each in (client, second)]
        assert [wait_for_end(client, job_id)["result"] for job_id in job_ids] == [9, 9]


@pytest.mark.parametrize(
    ("name", "value"),
    [("AJ_WORKERS", "none"), ("AJ_TASKS", "no.such.module"), ("AJ_REDIS_URL", "http://127.0.0.1"), ("AJ_WORKER", "2")],
)
def test_a_wrong_setting_ends_it_with_one_line(deployment: Deployment, name: str, value: str) -> None:
    """Exit code 2, and the line names the variable; a worker that cannot work is not started again and again."""
    done = subprocess.run(
        [sys.executable, "worker.py", "--only", "jobs"],
        env=clean_env({**deployment.env, name: value}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    [line] = [line for line in done.stderr.splitlines() if "stopping" not in line]
    assert line.startswith("aj: ")
    assert name in line


# -- the store goes away -------------------------------------------------------------------------------------


def moved(deployment: Deployment, url: str) -> Deployment:
    """The deployment in a store of its own, which the test may stop."""
    env = {**deployment.env, "AJ_REDIS_URL": url}
    return Deployment(Settings.from_env(env), env, redis.Redis.from_url(url))


def test_an_idle_worker_outlives_a_restart_of_redis(deployment: Deployment, folder: Path) -> None:
    """It notices, waits, and runs the next job; nobody has to restart it."""
    server = start_server(folder / "own")
    try:
        deployment = moved(deployment, server.url)
        client = deployment.client()
        with running_worker(deployment.env, folder) as worker:
            children = sorted(worker.children())
            server.stop()
            wait_until(lambda: "the store cannot be used" in worker.output, what="a worker that noticed")
            server = start_server(folder / "own")
            assert wait_for_end(client, submit(client, n=5))["result"] == 25
            assert sorted(worker.children()) == children
    finally:
        server.stop()


def test_an_outcome_waits_for_a_store_that_is_away(deployment: Deployment, folder: Path) -> None:
    """The task ends while Redis is down; when it is back, the outcome and its webhook are written, once."""
    server, path = start_server(folder / "own"), folder / "go"
    try:
        deployment = moved(deployment, server.url)
        client = deployment.client()
        with running_worker(deployment.env, folder, "--only", "jobs") as worker:
            job_id = submit(client, task="wait_for_file", path=str(path), callback_url=HOOK)
            wait_until(lambda: starts(path), what="a running job")
            server.stop()
            path.touch()
            wait_until(lambda: "aj.store: the store cannot be used" in worker.output, what="an outcome that waits")
            server = start_server(folder / "own")
            found = wait_for_end(client, job_id)
            assert (found["result"], found["attempt"]) == ("seen", 1)
            assert len(deliveries(deployment)) == 1
            assert rq_hash(deployment, job_id)[b"status"] == b"finished"
            assert len(starts(path)) == 1
    finally:
        server.stop()


# -- two hashes, one truth -----------------------------------------------------------------------------------

AGREES = {b"queued": b"queued", b"running": b"started", b"succeeded": b"finished", b"failed": b"failed"}
FINAL = {b"succeeded", b"failed"}
KINDS: list[dict[str, Any]] = [
    {"n": 5},
    {"task": "fail", "text": "x"},
    {"task": "give", "value": "nan"},
    {"task": "exit_with", "code": 0},
    {"task": "kill_itself"},
    {"task": "report", "fractions": [0.0, 1.0]},
    {"n": 6, "unknown to the worker": True},
]


def test_our_status_and_rqs_never_disagree(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """Both hashes, read in one step again and again while jobs of every kind run: no moment shows one without
    the other, nor a final status without its outcome and its one webhook."""
    job_ids = []
    for number in range(12 * len(KINDS)):
        members = dict(KINDS[number % len(KINDS)])
        spoiled = members.pop("unknown to the worker", False)
        job_ids.append(submit(client, **members, callback_url=HOOK))
        if spoiled:
            deployment.redis.hset(rq_key(job_ids[-1]), "data", b'["no such task", null, [], {}]')
    job_ids.append(submit(client, task="swallow_everything", callback_url=HOOK))
    seen = look(deployment, job_ids[-1])
    with running_worker(deployment.env, folder, "--only", "jobs"):
        for job_id in job_ids:
            seen |= follow(deployment, job_id)
    assert seen == set(AGREES)
    assert len(deliveries(deployment)) == len(job_ids)


def look(deployment: Deployment, job_id: str) -> set[bytes]:
    """The job's status, as all that is kept of it agrees."""
    prefix = deployment.settings.prefix
    with deployment.redis.pipeline(transaction=True) as pipe:
        pipe.hmget(f"{prefix}:job:{job_id}", "status", "outcome")
        pipe.hget(rq_key(job_id), "status")
        pipe.exists(f"{prefix}:out:job:{job_id}")
        pipe.exists(f"{prefix}:tomb:{job_id}")
        (status, outcome), rq_status, rows, tombstones = pipe.execute()
    final = status in FINAL
    assert AGREES[status] == rq_status
    assert ((outcome is not None), rows, tombstones) == (final, final, final)
    return {status}


def follow(deployment: Deployment, job_id: str) -> set[bytes]:
    """Looks at the job until it has ended, and gives the statuses that were seen."""
    seen: set[bytes] = set()
    deadline = threading.Event()
    timer = threading.Timer(30, deadline.set)
    timer.start()
    while not seen & FINAL:
        assert not deadline.is_set(), f"{job_id} did not end"
        seen |= look(deployment, job_id)
    timer.cancel()
    return seen
