"""Only the execution that runs a job may change it, and never after its end; progress is shown while it runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.job import ErrorType, Outcome
from aj.store import Fenced
from aj.worker.attempt import JobAttempt
from tests.conftest import Deployment
from tests.support.deliveries import deliveries, message, outbox_indexes
from tests.support.inside import (
    attempt_at,
    jobs_of,
    our_hash,
    rq_hash,
    rq_key,
    rq_leftovers,
    starts,
)
from tests.support.jobs import document, run, submit, work_off
from tests.support.waiting import wait_until

HOOK = "http://127.0.0.1:9/hook"
RESULT = Outcome.succeeded(b"25")
ERROR = Outcome.failed(ErrorType.LOST, "It is gone.")


def running_attempt(deployment: Deployment, client: FlaskClient, execution: str = "first") -> tuple[str, JobAttempt]:
    """A job with a webhook, taken under `execution`, and the try that runs it."""
    job_id = submit(client, n=5, callback_url=HOOK)
    attempt = attempt_at(deployment, job_id, execution)
    attempt.start([("HSET", rq_key(job_id), "status", "started")])
    return job_id, attempt


def finish(attempt: JobAttempt, outcome: Outcome, job_id: str, rq_status: str = "finished") -> None:
    """Ends the job as a worker would, with a command for RQ's hash and one that counts."""
    attempt.decide(outcome)
    attempt.end([("HSET", rq_key(job_id), "status", rq_status), ("HINCRBY", rq_key(job_id), "counted", 1)])


def everything(deployment: Deployment, job_id: str) -> list[object]:
    """All that the store knows of the job."""
    tombstone = deployment.redis.get(f"{deployment.settings.prefix}:tomb:{job_id}")
    row: Any = deployment.redis.hgetall(f"{deployment.settings.prefix}:out:job:{job_id}")
    return [our_hash(deployment, job_id), rq_hash(deployment, job_id), tombstone, row, deliveries(deployment)]


# -- fencing -------------------------------------------------------------------------------------------------


def test_an_outcome_of_another_execution_is_refused(deployment: Deployment, client: FlaskClient) -> None:
    """It changes nothing, neither in our hash nor in RQ's, and owes no webhook."""
    job_id, attempt = running_attempt(deployment, client)
    other = attempt_at(deployment, job_id, "second")
    other.job = attempt.job
    before = everything(deployment, job_id)
    with pytest.raises(Fenced):
        finish(other, ERROR, job_id, "failed")
    assert everything(deployment, job_id) == before
    assert before[1][b"status"] == b"started"  # type: ignore[index]
    assert deliveries(deployment) == []


def test_an_outcome_of_a_job_that_waits_is_refused(deployment: Deployment, client: FlaskClient) -> None:
    """Nothing runs it, so nobody can know how it ended."""
    job_id = submit(client, n=5, callback_url=HOOK)
    attempt = attempt_at(deployment, job_id, "first")
    attempt.job = jobs_of(deployment).find(job_id).job
    before = everything(deployment, job_id)
    with pytest.raises(Fenced):
        finish(attempt, RESULT, job_id)
    assert everything(deployment, job_id) == before


def test_an_outcome_of_a_job_that_is_gone_brings_nothing_back(deployment: Deployment, client: FlaskClient) -> None:
    """A job whose hash was removed while it ran stays unknown."""
    job_id, attempt = running_attempt(deployment, client)
    deployment.redis.delete(f"{deployment.settings.prefix}:job:{job_id}")
    with pytest.raises(Fenced):
        finish(attempt, RESULT, job_id)
    assert client.get(f"/jobs/{job_id}").status_code == 404
    assert deliveries(deployment) == []


def test_an_outcome_that_is_written_twice_counts_once(deployment: Deployment, client: FlaskClient) -> None:
    """The reply to the first command may be lost; the repeat is accepted, and nothing is doubled."""
    job_id, attempt = running_attempt(deployment, client)
    finish(attempt, RESULT, job_id)
    before = everything(deployment, job_id)
    finish(attempt, RESULT, job_id)
    assert everything(deployment, job_id) == before
    assert rq_hash(deployment, job_id)[b"counted"] == b"1"
    assert len(deliveries(deployment)) == 1


@pytest.mark.parametrize(
    ("first", "second"), [(RESULT, ERROR), (ERROR, RESULT)], ids=["succeeded-first", "failed-first"]
)
@pytest.mark.parametrize("execution", ["first", "second"])
def test_a_final_status_never_changes(
    deployment: Deployment, client: FlaskClient, first: Outcome, second: Outcome, execution: str
) -> None:
    """The work-horse and the worker that gave it up may both tell of an end: the first one told stands."""
    job_id, attempt = running_attempt(deployment, client)
    finish(attempt, first, job_id)
    before = everything(deployment, job_id)
    late = attempt_at(deployment, job_id, execution)
    late.job = attempt.job
    with pytest.raises(Fenced):
        finish(late, second, job_id, "failed")
    assert everything(deployment, job_id) == before
    assert document(client, job_id)["status"] == first.status


def test_a_job_is_taken_once(deployment: Deployment, client: FlaskClient) -> None:
    """A second execution is refused; the same one again is a command that was sent twice."""
    job_id, attempt = running_attempt(deployment, client)
    attempt.start([("HINCRBY", rq_key(job_id), "counted", 1)])
    with pytest.raises(Fenced):
        attempt_at(deployment, job_id, "second").start([("HINCRBY", rq_key(job_id), "counted", 1)])
    assert document(client, job_id)["attempt"] == 1
    assert b"counted" not in rq_hash(deployment, job_id)


def test_a_work_horse_that_lost_its_job_leaves_it_alone(
    deployment: Deployment, client: FlaskClient, folder: Path
) -> None:
    """With a real worker: the job went to another execution meanwhile, so RQ's hash is not finished either."""
    path = folder / "go"
    job_id = submit(client, task="wait_for_file", path=str(path), callback_url=HOOK)

    def take_it_away() -> None:
        wait_until(lambda: starts(path), what="a running job")
        deployment.redis.hset(f"{deployment.settings.prefix}:job:{job_id}", "execution", "another")
        path.touch()

    thief = threading.Thread(target=take_it_away)
    thief.start()
    work_off(deployment)
    thief.join()
    assert document(client, job_id)["status"] == "running"
    assert rq_hash(deployment, job_id)[b"status"] == b"started"
    assert deliveries(deployment) == []


# -- what an end leaves behind -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "rq_status"),
    [({"n": 5}, b"finished"), ({"task": "fail", "text": "x"}, b"failed"), ({"task": "kill_itself"}, b"failed")],
    ids=["succeeded", "failed", "lost"],
)
def test_an_end_leaves_nothing_under_way_in_rq(
    deployment: Deployment, client: FlaskClient, members: dict[str, Any], rq_status: bytes
) -> None:
    """RQ's lists and notes of running jobs are clean, and its hash expires with ours."""
    job_id = run(deployment, client, **members)["job_id"]
    assert rq_hash(deployment, job_id)[b"status"] == rq_status
    assert rq_leftovers(deployment, job_id) == []
    ours: Any = deployment.redis.ttl(f"{deployment.settings.prefix}:job:{job_id}")
    theirs: Any = deployment.redis.ttl(rq_key(job_id))
    assert 0 < ours <= deployment.settings.result_ttl_s
    assert abs(ours - theirs) <= 2


def test_an_end_with_a_callback_owes_one_webhook(deployment: Deployment, client: FlaskClient) -> None:
    """One row in the outbox, named by the job; a job without a callback owes none."""
    job_id = run(deployment, client, n=5, callback_url=HOOK)["job_id"]
    run(deployment, client, n=6)
    assert deliveries(deployment) == [f"{deployment.settings.prefix}:out:job:{job_id}"]
    assert message(deployment, job_id)["result"] == 25
    assert len(outbox_indexes(deployment)) == 2


def test_a_callback_address_that_the_worker_may_not_call_does_not_harm_the_job(
    deployment: Deployment, client: FlaskClient
) -> None:
    """The API allowed it and the worker's setting does not: the job ends as it ended, the webhook is owed."""
    job_id = submit(client, n=5, callback_url=HOOK)
    deployment.worker(AJ_CALLBACK_ALLOW="127.0.0.1:1").work_once()
    assert document(client, job_id)["result"] == 25
    assert len(deliveries(deployment)) == 1


# -- progress ------------------------------------------------------------------------------------------------


def test_progress_is_shown_while_the_task_runs(deployment: Deployment, client: FlaskClient) -> None:
    """It moves the entity tag, so that a conditional request notices it."""
    job_id, attempt = running_attempt(deployment, client)
    tags = [client.get(f"/jobs/{job_id}").headers["ETag"]]
    for fraction in (0.25, 0.5):
        attempt.report(json.dumps({"fraction": fraction, "message": "so far"}).encode())
        answer = client.get(f"/jobs/{job_id}", headers={"If-None-Match": tags[-1]})
        assert answer.status_code == 200
        assert answer.json is not None
        assert (answer.json["status"], answer.json["progress"]["fraction"]) == ("running", fraction)
        tags.append(answer.headers["ETag"])
    assert len(set(tags)) == 3


def test_progress_of_a_real_task_stands_in_its_document(deployment: Deployment, client: FlaskClient) -> None:
    """The last report stays, beside the final status and the result."""
    found = run(deployment, client, task="report", fractions=[0.0, 0.5, 1.0])
    assert (found["status"], found["result"]) == ("succeeded", "reported")
    assert found["progress"] == {"fraction": 1.0, "message": "at 1.0"}


@pytest.mark.parametrize("end", [True, False], ids=["after-the-end", "of-another-execution"])
def test_a_late_report_of_progress_is_ignored(deployment: Deployment, client: FlaskClient, end: bool) -> None:
    """A final document never moves again, and only the execution that runs tells how far it is."""
    job_id, attempt = running_attempt(deployment, client)
    reporter: Callable[[bytes], None] = attempt.report if end else attempt_at(deployment, job_id, "second").report
    if end:
        finish(attempt, RESULT, job_id)
    before = client.get(f"/jobs/{job_id}")
    reporter(b'{"fraction": 0.1}')
    after = client.get(f"/jobs/{job_id}")
    assert (after.data, after.headers["ETag"]) == (before.data, before.headers["ETag"])
