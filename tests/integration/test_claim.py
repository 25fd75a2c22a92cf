"""What a worker takes from the queue, and what it lets lie: only jobs of ours that wait, each of them once."""

from __future__ import annotations

import json
import pickle
import threading
import zlib
from pathlib import Path

import pytest
import rq
from flask.testing import FlaskClient
from rq.serializers import JSONSerializer

from aj.store import Fenced, Keys
from tests.conftest import Deployment
from tests.support.deliveries import deliveries, message
from tests.support.inside import attempt_at, our_hash, rq_hash, rq_key, rq_leftovers, starts
from tests.support.jobs import document, run, submit, work_off
from tests.support.sweeping import lapse, make_sweep
from tests.support.waiting import wait_until

HOOK = "http://127.0.0.1:9/hook"


def rewrite_payload(deployment: Deployment, job_id: str, data: bytes) -> None:
    """Puts another call into RQ's job, as another version of the program may have written it."""
    deployment.redis.hset(rq_key(job_id), "data", data)


def call(name: object, kwargs: object) -> bytes:
    return zlib.compress(json.dumps([name, None, [], kwargs]).encode())


def put_into_queue(deployment: Deployment, job_id: str) -> None:
    deployment.redis.rpush(f"rq:queue:{deployment.queue}", job_id)


def under_way(deployment: Deployment, job_id: str) -> list[object]:
    """What is noted of a running job, but for the heartbeat of the worker that runs it."""
    noted = rq_hash(deployment, job_id)
    noted.pop(b"last_heartbeat", None)
    return [our_hash(deployment, job_id), noted, rq_leftovers(deployment, job_id)]


def test_an_id_that_stands_twice_in_the_queue_runs_once(
    deployment: Deployment, client: FlaskClient, folder: Path
) -> None:
    """The second entry is dropped, and RQ keeps no note of it."""
    path = folder / "go"
    path.touch()
    job_id = submit(client, task="wait_for_file", path=str(path))
    put_into_queue(deployment, job_id)
    work_off(deployment)
    assert len(starts(path)) == 1
    assert document(client, job_id)["attempt"] == 1
    assert rq_hash(deployment, job_id)[b"status"] == b"finished"
    assert rq_leftovers(deployment, job_id) == []


def test_a_second_entry_is_dropped_while_the_first_one_runs(
    deployment: Deployment, client: FlaskClient, folder: Path
) -> None:
    """The worker that drops it takes nothing away from the one that runs the job."""
    path = folder / "go"
    job_id = submit(client, task="wait_for_file", path=str(path))
    first = threading.Thread(target=deployment.worker().work_once)
    first.start()
    wait_until(lambda: starts(path), what="a running job")
    before = under_way(deployment, job_id)
    put_into_queue(deployment, job_id)
    work_off(deployment)
    after = under_way(deployment, job_id)
    path.touch()
    first.join()
    assert after == before
    assert len(starts(path)) == 1
    assert document(client, job_id)["status"] == "succeeded"
    assert rq_leftovers(deployment, job_id) == []


def test_a_job_that_waits_for_its_next_attempt_is_not_run_before(deployment: Deployment, client: FlaskClient) -> None:
    """A worker that was frozen, or a hand, may leave an entry in the queue; the delay holds all the same."""
    job_id = submit(client, task="try_again_later")
    work_off(deployment)
    before = our_hash(deployment, job_id)
    assert before[b"status"] == b"queued"
    put_into_queue(deployment, job_id)
    work_off(deployment)
    assert our_hash(deployment, job_id) == before
    assert rq_leftovers(deployment, job_id) == []


def test_an_id_that_we_know_nothing_of_is_dropped(deployment: Deployment, client: FlaskClient) -> None:
    """Its hash is gone, so nobody waits for it: it does not run, and the next job does."""
    forgotten = submit(client, n=2)
    deployment.redis.delete(f"{deployment.settings.prefix}:job:{forgotten}")
    assert run(deployment, client, n=3)["result"] == 9
    assert client.get(f"/jobs/{forgotten}").status_code == 404
    assert rq_leftovers(deployment, forgotten) == []


def test_an_id_that_rq_knows_nothing_of_is_dropped(deployment: Deployment, client: FlaskClient) -> None:
    """RQ passes over it; nothing of it stays behind in RQ's lists."""
    put_into_queue(deployment, "no-such-job")
    assert run(deployment, client, n=3)["result"] == 9
    assert rq_leftovers(deployment, "no-such-job") == []


@pytest.mark.parametrize("field", ["timeout", "created_at", "status"])
def test_a_job_that_rq_cannot_read_does_not_stop_the_worker(
    deployment: Deployment, client: FlaskClient, field: str
) -> None:
    """RQ raises where a field of its own is damaged; the entry is dropped and the next job runs."""
    damaged = rq.Queue(deployment.queue, connection=deployment.redis).enqueue("os.getpid")
    deployment.redis.hset(damaged.key, field, "damaged")
    put_into_queue(deployment, "not an id that RQ allows")
    assert run(deployment, client, n=3)["result"] == 9
    assert rq_leftovers(deployment, damaged.id) == []


@pytest.mark.parametrize("serializer", [None, JSONSerializer], ids=["pickle", "json"])
def test_a_job_of_plain_rq_is_not_run(
    deployment: Deployment, client: FlaskClient, folder: Path, serializer: str | type[JSONSerializer] | None
) -> None:
    """Whoever can write to the queue cannot make the worker call a function by its path, or read a pickle."""
    made = folder / "made by a foreign job"
    foreign = rq.Queue(deployment.queue, connection=deployment.redis, serializer=serializer)
    job = foreign.enqueue("os.mkdir", str(made), meta={"who": "somebody else"})
    assert run(deployment, client, n=3)["result"] == 9
    assert not made.exists()
    assert rq_leftovers(deployment, job.id) == []


@pytest.mark.parametrize(
    "data",
    [
        b"\x80 neither compressed nor JSON",
        b"",
        zlib.compress(b"\xff\xfe"),
        pickle.dumps(("square", None, (), {"n": 2})),
        call(5, {}),
        call("square", [1]),
        call("square", None),
        zlib.compress(b'["square"]'),
        zlib.compress(b'{"task": "square"}'),
    ],
    ids=[
        "garbage",
        "empty",
        "not-utf-8",
        "pickle",
        "number-for-name",
        "list-for-kwargs",
        "null-kwargs",
        "short",
        "map",
    ],
)
def test_a_payload_that_cannot_be_read_fails_the_job(deployment: Deployment, client: FlaskClient, data: bytes) -> None:
    """The caller learns of it by the document and by the webhook, and the worker goes on."""
    job_id = submit(client, n=2, callback_url=HOOK)
    rewrite_payload(deployment, job_id, data)
    assert run(deployment, client, n=3)["result"] == 9
    assert_unavailable(deployment, client, job_id)


@pytest.mark.parametrize("params", [{"m": 5}, {"n": "5"}, {}, {"n": 5, "old": 1}], ids=str)
def test_parameters_of_another_version_of_the_task_fail_the_job(
    deployment: Deployment, client: FlaskClient, params: dict[str, object]
) -> None:
    """A job that was queued before the task changed is not run with arguments that do not fit."""
    job_id = submit(client, n=2, callback_url=HOOK)
    rewrite_payload(deployment, job_id, call("square", params))
    work_off(deployment)
    assert_unavailable(deployment, client, job_id)


def test_a_task_that_the_worker_lacks_fails_the_job(deployment: Deployment, client: FlaskClient) -> None:
    """An API that was deployed before its worker gets an answer for its callers, not silence."""
    job_id = submit(client, n=2, callback_url=HOOK)
    deployment.worker(AJ_TASKS="tests.support.tasks_by_name").work_once()
    assert_unavailable(deployment, client, job_id)


@pytest.mark.parametrize("name", ["os.mkdir", "tests.support.tasks.square", "builtins.eval"])
def test_a_dotted_path_is_no_name_of_a_task(
    deployment: Deployment, client: FlaskClient, folder: Path, name: str
) -> None:
    """Names are looked up in the registry and never imported, also where the queue's content was forged."""
    made = folder / "made by a forged job"
    job_id = submit(client, n=2, callback_url=HOOK)
    kwargs = {"path": str(made)} if name == "os.mkdir" else {"n": 2}
    rewrite_payload(deployment, job_id, call(name, kwargs))
    work_off(deployment)
    assert not made.exists()
    if name == "os.mkdir":
        assert_unavailable(deployment, client, job_id)
    else:
        assert document(client, job_id)["result"] == 4, "the task that was submitted, whatever the queue says"


def assert_unavailable(deployment: Deployment, client: FlaskClient, job_id: str) -> None:
    found = document(client, job_id)
    assert found["status"] == "failed"
    assert found["error"]["type"] == "task-unavailable"
    assert "result" not in found
    assert rq_hash(deployment, job_id)[b"status"] == b"failed"
    assert rq_leftovers(deployment, job_id) == []
    assert len(deliveries(deployment)) == 1
    told = message(deployment, job_id)
    assert (told["type"], told["job_id"], told["error"]) == ("job.failed", job_id, found["error"])


def test_a_start_that_is_repeated_late_begins_a_new_lease(deployment: Deployment, client: FlaskClient) -> None:
    """Its first answer was lost and the store away for longer than the lease: the sweep finds a worker that lives."""
    job_id = submit(client, n=3)
    attempt = attempt_at(deployment, job_id, "one")
    attempt.start([])
    lapse(deployment)
    attempt.start([])
    make_sweep(deployment).once()
    seen = document(client, job_id)
    assert (seen["status"], seen["attempt"]) == ("running", 1)
    deployment.redis.delete(Keys(deployment.settings.prefix).leases)


def test_a_start_that_is_repeated_too_late_is_refused(deployment: Deployment, client: FlaskClient) -> None:
    """A sweep has put the job back meanwhile: the next execution is another one."""
    job_id = submit(client, task="try_again_at_once", fail=False)
    attempt = attempt_at(deployment, job_id, "one")
    attempt.start([])
    lapse(deployment)
    make_sweep(deployment).once()
    with pytest.raises(Fenced):
        attempt.start([])
    assert document(client, job_id)["status"] == "queued"
