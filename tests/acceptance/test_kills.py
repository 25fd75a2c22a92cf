"""SIGKILL at every process of a worker: what runs is told of or repeated, and what is left goes on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from pathlib import Path

from flask.testing import FlaskClient

from tests.conftest import Deployment
from tests.support.deliveries import outbox_indexes, outbox_of, state
from tests.support.inside import is_alive, rq_hash, rq_leftovers, starts, wait_for_end
from tests.support.jobs import submit
from tests.support.processes import Running, running_worker
from tests.support.receiver import Received, Receiver
from tests.support.waiting import wait_until


def child_that_does(worker: Running, what: str) -> int:
    """The pid of the fleet's child whose command line ends with `what`, once it is there."""

    def look() -> int | None:
        for pid in worker.children():
            words: list[str] = []
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
            if words[-1:] == [what]:
                return pid
        return None

    return wait_until(look, what=f"a child for {what}")


def test_a_killed_work_horse_is_told_of(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, folder: Path
) -> None:
    """The job is failed as lost within seconds, the webhook says so, and the next job runs."""
    path = folder / "go"
    with running_worker(deployment.env, folder):
        job_id = submit(client, task="wait_for_file", path=str(path), callback_url=receiver.url())
        [horse] = wait_until(lambda: starts(path), what="a running job")
        os.kill(horse, signal.SIGKILL)
        wait_until(lambda: receiver.received, 5, "the webhook")
        found = wait_for_end(client, job_id)
        assert (found["status"], found["error"]["type"]) == ("failed", "lost")
        told = json.loads(receiver.received[0].body)
        assert (told["type"], told["job_id"], told["error"]) == ("job.failed", job_id, found["error"])
        assert wait_for_end(client, submit(client, n=5))["result"] == 25
        wait_until(lambda: state(client, job_id)["state"] == "delivered", what="the record of the delivery")
    assert rq_hash(deployment, job_id)[b"status"] == b"failed"
    assert rq_leftovers(deployment, job_id) == []
    assert len(receiver.received) == 1
    assert outbox_indexes(deployment) == []


def test_a_killed_rq_worker_takes_its_work_horse_along(
    deployment: Deployment, client: FlaskClient, folder: Path
) -> None:
    """Nothing runs on that nobody watches, and the fleet starts another RQ worker that runs the next job."""
    path = folder / "go"
    with running_worker(deployment.env, folder, "--only", "jobs") as worker:
        submit(client, task="wait_for_file", path=str(path))
        [horse] = wait_until(lambda: starts(path), what="a running job")
        killed = child_that_does(worker, deployment.queue)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not is_alive(horse), 5, "the end of the work-horse")
        assert wait_for_end(client, submit(client, n=5))["result"] == 25
        assert child_that_does(worker, deployment.queue) != killed
    assert len(starts(path)) == 1


def test_a_killed_fleet_leaves_no_process_behind(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """Its children end by themselves, a running job first coming to its end."""
    path = folder / "go"
    with running_worker(deployment.env, folder) as worker:
        job_id = submit(client, task="wait_for_file", path=str(path))
        [horse] = wait_until(lambda: starts(path), what="a running job")
        left = [horse, *worker.children()]
        assert len(left) == 4, "the work-horse, and a child each for jobs, deliveries and the sweep"
        worker.kill()
        path.touch()
        wait_until(lambda: not any(map(is_alive, left)), 8, "the end of all its processes")
    assert wait_for_end(client, job_id)["result"] == "seen"
    assert rq_leftovers(deployment, job_id) == []


def test_a_killed_deliverer_loses_no_webhook(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, folder: Path
) -> None:
    """Killed while the receiver has the message and has not answered: another one sends it again when the lease
    ends, with the same id and bytes."""
    answered, arrived = threading.Event(), threading.Event()

    def hold_the_first(_: Received) -> tuple[int, dict[str, str]]:
        if not arrived.is_set():
            arrived.set()
            answered.wait(30)
        return 200, {}

    receiver.answer = hold_the_first
    with running_worker({**deployment.env, "AJ_CALLBACK_SCHEDULE_S": "0,0,0"}, folder) as worker:
        job_id = submit(client, n=5, callback_url=receiver.url())
        wait_until(arrived.is_set, what="the first attempt")
        killed = child_that_does(worker, "deliveries")
        os.kill(killed, signal.SIGKILL)
        answered.set()
        wait_until(lambda: child_that_does(worker, "deliveries") != killed, what="another deliverer")
        end_leases(deployment, job_id)
        wait_until(lambda: state(client, job_id)["state"] == "delivered", what="the delivery")
    first, second = receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    assert outbox_indexes(deployment) == []


def end_leases(deployment: Deployment, job_id: str) -> None:
    """Moves the ends of the leases to now, instead of waiting half a minute for them."""
    prefix = deployment.settings.prefix
    assert outbox_of(deployment).claim(1, 30)[0] == []
    for key in deployment.keys("out:busy:*"):
        endpoint = key.removeprefix(f"{prefix}:out:busy:")
        deployment.redis.delete(key)
        deployment.redis.zadd(f"{prefix}:out:due:{endpoint}", {job_id: 0})
        deployment.redis.zadd(f"{prefix}:out:hosts", {endpoint: 0})
