"""A request may be held until the job has ended or changed, and is woken by the change itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.job import Outcome
from tests.conftest import Deployment
from tests.support.inside import attempt_at
from tests.support.jobs import submit, work_off
from tests.support.waiting import wait_until

WAIT = {"Prefer": "wait=20"}


def in_background(do: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=do)
    thread.start()
    return thread


def test_a_submission_that_prefers_to_wait_is_answered_with_the_result(deployment: Deployment) -> None:
    """200 with the document as soon as the job has ended, and where it can be found later."""
    client = deployment.client()

    def work() -> None:
        wait_until(deployment.queued, what="a job")
        work_off(deployment)

    working = in_background(work)
    begun_s = time.monotonic()
    answer = client.post("/jobs", json={"n": 5}, headers=WAIT)
    working.join()
    assert answer.status_code == 200
    assert (answer.json or {})["result"] == 25
    assert answer.headers["Location"] == f"/jobs/{(answer.json or {})['job_id']}"
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert "Prefer" in answer.headers["Vary"]
    assert "Retry-After" not in answer.headers
    assert time.monotonic() - begun_s < 15


def test_a_wait_that_was_too_short_is_a_plain_202(client: FlaskClient) -> None:
    """The preference was honoured, and the job goes on."""
    answer = client.post("/jobs", json={"n": 5}, headers={"Prefer": "wait=1"})
    assert answer.status_code == 202
    assert (answer.json or {}).keys() == {"job_id", "status"}
    assert answer.headers["Preference-Applied"] == "wait=1"
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize("prefer", ["wait=-1", "wait=abc", "wait", "respond-async", "wait=1.5", "=", ";;;", "wait=0"])
def test_a_preference_that_says_nothing_useful_is_passed_over(client: FlaskClient, prefer: str) -> None:
    """Never an error, and never a wait."""
    begun_s = time.monotonic()
    assert client.post("/jobs", json={"n": 5}, headers={"Prefer": prefer}).status_code == 202
    assert time.monotonic() - begun_s < 1


def test_a_status_request_waits_for_the_end(deployment: Deployment, client: FlaskClient) -> None:
    """Without If-None-Match a change on the way does not end the wait."""
    job_id = submit(client, n=5)
    attempt = attempt_at(deployment, job_id, "e")
    answers: list[Any] = []
    other = deployment.client()
    waiting = in_background(lambda: answers.append(other.get(f"/jobs/{job_id}", headers=WAIT)))
    wait_until(lambda: _subscribed(deployment), what="a waiting request")
    attempt.start([])
    attempt.report(b'{"fraction": 0.5}')
    assert waiting.is_alive()
    _end(attempt)
    waiting.join(10)
    assert answers[0].json["status"] == "succeeded"


def test_a_status_request_with_an_etag_waits_for_any_change(deployment: Deployment, client: FlaskClient) -> None:
    """The caller says what it knows, so no change between two requests is missed."""
    job_id = submit(client, n=5)
    etag = client.get(f"/jobs/{job_id}").headers["ETag"]
    known = {**WAIT, "If-None-Match": etag}
    answers: list[Any] = []
    other = deployment.client()
    waiting = in_background(lambda: answers.append(other.get(f"/jobs/{job_id}", headers=known)))
    wait_until(lambda: _subscribed(deployment), what="a waiting request")
    attempt = attempt_at(deployment, job_id, "e")
    attempt.start([])
    waiting.join(10)
    assert (answers[0].status_code, answers[0].json["status"]) == (200, "running")
    late = client.get(f"/jobs/{job_id}", headers=known)
    assert (late.status_code, (late.json or {})["status"]) == (200, "running"), "it changed before: no wait"
    _end(attempt)


def test_nothing_new_is_304_at_the_end_of_the_wait(client: FlaskClient) -> None:
    """With the headers that a 200 would have."""
    job_id = submit(client, n=5)
    etag = client.get(f"/jobs/{job_id}").headers["ETag"]
    answer = client.get(f"/jobs/{job_id}", headers={"Prefer": "wait=1", "If-None-Match": etag})
    assert answer.status_code == 304
    assert answer.headers["ETag"] == etag
    assert answer.headers["Preference-Applied"] == "wait=1"
    assert int(answer.headers["Retry-After"]) >= 1


def test_an_unknown_or_ended_job_is_never_waited_for(deployment: Deployment, client: FlaskClient) -> None:
    """There is nothing to come."""
    job_id = submit(client, n=5)
    work_off(deployment)
    begun_s = time.monotonic()
    assert client.get(f"/jobs/{job_id}", headers=WAIT).status_code == 200
    assert client.get("/jobs/018f2b5e-0000-7000-8000-000000000000", headers=WAIT).status_code == 404
    assert time.monotonic() - begun_s < 2


def test_who_finds_no_place_is_answered_at_once(deployment: Deployment) -> None:
    """Half of the threads may wait; the others always answer."""
    client = deployment.client(AJ_WEB_THREADS="4")
    with ThreadPoolExecutor(8) as pool:
        begun_s = time.monotonic()
        wish = {"Prefer": "wait=3"}
        answers = [
            pool.submit(client.application.test_client().post, "/jobs", json={"n": 5}, headers=wish) for _ in range(8)
        ]
        applied = [each.result().headers.get("Preference-Applied") for each in answers]
    assert applied.count("wait=3") == 2
    assert applied.count(None) == 6
    assert time.monotonic() - begun_s < 10


def _subscribed(deployment: Deployment) -> bool:
    counts: Any = deployment.redis.pubsub_numsub(f"{deployment.settings.prefix}:changes")
    return bool(counts[0][1])


def _end(attempt: Any) -> None:
    attempt.decide(Outcome.succeeded(b"25"))
    attempt.end([])
