"""Cancel, delete, bare result, deliveries and sending again."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.job import Outcome
from aj.store import Fenced, Keys
from tests.conftest import Deployment
from tests.support.deliveries import delivering, ended, wait_for_state
from tests.support.inside import attempt_at, rq_leftovers, starts
from tests.support.jobs import document, run, submit, work_off
from tests.support.processes import running_worker
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until


def test_a_queued_job_that_is_cancelled_never_runs(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """It ends at once as failed, with its webhook, and leaves the queue."""
    path = folder / "go"
    path.touch()
    job_id = submit(client, task="wait_for_file", path=str(path), callback_url="http://127.0.0.1:9/")
    answer = client.post(f"/jobs/{job_id}/cancel")
    assert answer.status_code == 200
    assert (answer.json or {})["status"] == "failed"
    assert (answer.json or {})["error"]["type"] == "cancelled"
    assert (answer.json or {})["callback"]["state"] == "pending"
    assert deployment.queued() == 0
    work_off(deployment)
    assert starts(path) == []
    assert client.post(f"/jobs/{job_id}/cancel").status_code == 200, "repeating it is harmless"
    assert rq_leftovers(deployment, job_id) == []


def test_a_running_job_is_stopped_within_two_seconds(
    deployment: Deployment, client: FlaskClient, folder: Path, receiver: Receiver
) -> None:
    """Its work-horse is ended; one final status, one webhook; the log says that it was meant."""
    path = folder / "go"
    with running_worker(deployment.env, folder) as worker:
        job_id = submit(client, task="wait_for_file", path=str(path), callback_url=receiver.url())
        wait_until(lambda: starts(path), what="a running job")
        begun_s = time.monotonic()
        answer = client.post(f"/jobs/{job_id}/cancel")
        took_s = time.monotonic() - begun_s
        assert (answer.status_code, (answer.json or {})["error"]["type"]) == (200, "cancelled")
        assert took_s < 2.5
        wait_until(lambda: receiver.received, what="the webhook")
        assert document(client, submit(client, n=1))["status"] in ("queued", "running", "succeeded")
    assert len(receiver.received) == 1
    assert f"job {job_id}: was stopped on request" in worker.output
    assert "work-horse died" not in worker.output


def test_a_job_that_has_ended_otherwise_cannot_be_cancelled(deployment: Deployment, client: FlaskClient) -> None:
    """409; its outcome stands."""
    job = run(deployment, client, n=5)
    answer = client.post(f"/jobs/{job['job_id']}/cancel")
    assert answer.status_code == 409
    assert (answer.json or {})["type"].endswith("already-ended")
    assert document(client, job["job_id"])["result"] == 25


def test_cancel_against_start_and_finish_makes_one_end(deployment: Deployment, client: FlaskClient) -> None:
    """Whoever is first in the store; the other one changes nothing, and one webhook is owed."""
    for number in range(20):
        job_id = submit(client, n=5, callback_url="http://127.0.0.1:9/")
        attempt = attempt_at(deployment, job_id, f"execution {number}")
        with ThreadPoolExecutor(1) as other:
            cancelling = other.submit(deployment.client().post, f"/jobs/{job_id}/cancel")
            with contextlib.suppress(Fenced):
                attempt.start([])
                attempt.decide(Outcome.succeeded(b"25"))
                attempt.end([])
        job = document(client, job_id)
        assert (job["status"], cancelling.result().status_code) in [("succeeded", 409), ("failed", 200)]
        assert ("result" in job) != ("error" in job)
    assert len(deployment.keys("out:job:*")) == 20


def test_a_delayed_job_can_be_cancelled(deployment: Deployment, client: FlaskClient) -> None:
    """It waits for its next attempt, which never comes."""
    job_id = submit(client, task="try_again_later")
    work_off(deployment)
    answer = client.post(f"/jobs/{job_id}/cancel")
    assert (answer.json or {})["error"]["type"] == "cancelled"
    assert deployment.redis.zcard(Keys(deployment.settings.prefix).delayed) == 0


@pytest.mark.parametrize("path", ["cancel", "deliveries"])
def test_what_is_done_to_an_unknown_job_is_404(client: FlaskClient, path: str) -> None:
    """Whatever it is."""
    assert client.post(f"/jobs/018f2b5e-0000-7000-8000-000000000000/{path}").status_code == 404
    assert client.post(f"/jobs/x/{path}").status_code == 404


def test_an_ended_job_can_be_deleted(deployment: Deployment, client: FlaskClient) -> None:
    """204, again 204, and then 410 that says so; nothing of it is left but the tombstone."""
    job_id = run(deployment, client, n=5)["job_id"]
    assert client.delete(f"/jobs/{job_id}").status_code == 204
    assert client.delete(f"/jobs/{job_id}").status_code == 204
    gone = client.get(f"/jobs/{job_id}")
    assert gone.status_code == 410
    assert (gone.json or {})["type"].endswith("job-deleted")
    assert not deployment.redis.exists(f"rq:job:{job_id}", f"rq:results:{job_id}")
    assert (client.get("/jobs").json or {})["jobs"] == []


def test_a_deleted_job_says_since_when(deployment: Deployment, client: FlaskClient) -> None:
    """As an expired one does."""
    job_id = run(deployment, client, n=5)["job_id"]
    client.delete(f"/jobs/{job_id}")
    gone = client.get(f"/jobs/{job_id}").json or {}
    assert gone["expired_at"] in gone["detail"]


def test_cancel_and_delete_may_race(deployment: Deployment, client: FlaskClient) -> None:
    """Whoever is later hears what the job is by then, never that it was not there."""
    app = client.application
    with ThreadPoolExecutor(4) as threads:
        for _ in range(25):
            job_id = submit(client, n=5)
            client.post(f"/jobs/{job_id}/cancel")
            asked = [("DELETE", ""), ("POST", "/cancel"), ("DELETE", ""), ("POST", "/cancel")]
            answers = list(
                threads.map(lambda ask: app.test_client().open(f"/jobs/{job_id}{ask[1]}", method=ask[0]), asked)  # noqa: B023
            )
            assert [answers[0].status_code, answers[2].status_code] == [204, 204]
            assert {answers[1].status_code, answers[3].status_code} <= {200, 410}


@pytest.mark.parametrize(("method", "path"), [("DELETE", ""), ("POST", "/cancel")])
def test_a_caller_may_say_which_state_it_relies_on(
    deployment: Deployment, client: FlaskClient, method: str, path: str
) -> None:
    """Where it is another one by now, nothing is done. Source: RFC 9110 section 13."""
    ended = client.post(f"/jobs/{submit(client, n=5)}/cancel")
    etag, url = ended.headers["ETag"], f"/jobs/{(ended.json or {})['job_id']}"
    for wrong in ({"If-Match": '"other"'}, {"If-None-Match": etag}, {"If-None-Match": "*"}):
        assert client.open(url + path, method=method, headers=wrong).status_code == 412
    assert client.get(url).headers["ETag"] == etag
    assert client.open(url + path, method=method, headers={"If-Match": etag}).status_code in (200, 204)


def test_an_active_job_cannot_be_deleted(client: FlaskClient) -> None:
    """409: it would run for nobody."""
    assert client.delete(f"/jobs/{submit(client, n=5)}").status_code == 409


def test_the_bare_result_can_be_had(deployment: Deployment, client: FlaskClient) -> None:
    """Its bytes as they stand in the document, with an ETag of their own."""
    job_id = run(deployment, client, task="give", value="text")["job_id"]
    answer = client.get(f"/jobs/{job_id}/result")
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    assert answer.json == "grün ✓"
    again = client.get(f"/jobs/{job_id}/result", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_there_is_no_bare_result_before_the_end_or_after_a_failure(deployment: Deployment, client: FlaskClient) -> None:
    """409 that says which."""
    waiting = submit(client, n=1)
    assert (client.get(f"/jobs/{waiting}/result").json or {})["type"].endswith("still-active")
    work_off(deployment)
    failed = run(deployment, client, task="fail", text="x")["job_id"]
    assert (client.get(f"/jobs/{failed}/result").json or {})["type"].endswith("not-possible")


def test_each_attempt_is_shown_and_the_webhook_can_be_sent_again(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """With the same id and bytes; the log goes on."""
    receiver.answer = lambda _: (410, {})
    with delivering(deployment):
        job_id = ended(deployment, client, receiver.url())
        wait_for_state(client, job_id, "gone")
        receiver.answer = lambda _: (204, {})
        assert client.post(f"/jobs/{job_id}/deliveries").status_code == 202
        wait_for_state(client, job_id, "delivered")
    first, second = receiver.received
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    attempts: Any = (client.get(f"/jobs/{job_id}/deliveries").json or {})["attempts"]
    assert [each["status"] for each in attempts] == [410, 204]
    assert all(each["duration_s"] >= 0 and each["at"].endswith("Z") for each in attempts)


def test_an_attempt_without_an_answer_says_why_in_a_word(deployment: Deployment, client: FlaskClient) -> None:
    """And not what stands behind the firewall."""
    with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0"):
        job_id = ended(deployment, client, "http://127.0.0.1:9/", AJ_CALLBACK_SCHEDULE_S="0")
        wait_for_state(client, job_id, "exhausted")
    attempts: Any = (client.get(f"/jobs/{job_id}/deliveries").json or {})["attempts"]
    assert [each["error"] for each in attempts] == ["connect"]


def test_only_an_ended_delivery_can_be_sent_again(deployment: Deployment, client: FlaskClient) -> None:
    """409 for a job without a webhook, and for one whose attempts are still to come."""
    silent = run(deployment, client, n=5)["job_id"]
    assert client.post(f"/jobs/{silent}/deliveries").status_code == 409
    pending = ended(deployment, client, "http://127.0.0.1:9/")
    assert client.post(f"/jobs/{pending}/deliveries").status_code == 409
