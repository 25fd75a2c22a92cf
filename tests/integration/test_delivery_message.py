"""What a webhook says: the job as a GET shows it, signed so that the reference library agrees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from standardwebhooks.webhooks import Webhook

from aj import clock
from aj.job import Outcome
from tests.conftest import Deployment
from tests.support.deliveries import (
    Answer,
    delivering,
    ended,
    wait_for_state,
)
from tests.support.jobs import document, run
from tests.support.receiver import Received, Receiver

SECRETS = ["whsec_" + "bmV3ZXIgc2VjcmV0IG9mIDI0IGJ5dGVz", "whsec_" + "b2xkZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"]


def test_a_webhook_is_the_job_document_with_type_and_timestamp(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """One POST; job_id and status stand at the top level, and the rest is what a GET shows."""
    job_id = run(deployment, client, n=5, callback_url=receiver.url("/a?b=c"), metadata={"order": 7})["job_id"]
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    [got] = receiver.received
    body, shown = json.loads(got.body), document(client, job_id)
    assert got.path == "/a?b=c"
    assert got.headers["content-type"] == "application/json"
    assert (body.pop("type"), body.pop("timestamp")) == ("job.succeeded", shown["ended_at"])
    del body["callback"], shown["callback"]
    assert body == shown
    assert (body["job_id"], body["status"], body["result"]) == (job_id, "succeeded", 25)


def test_a_failed_job_is_told_of_too(deployment: Deployment, client: FlaskClient, receiver: Receiver) -> None:
    """With the same error that the document shows."""
    job_id = run(deployment, client, task="fail", text="secret", callback_url=receiver.url())["job_id"]
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    body = json.loads(receiver.received[0].body)
    assert (body["type"], body["status"], body["job_id"]) == ("job.failed", "failed", job_id)
    assert body["error"] == document(client, job_id)["error"]
    assert b"secret" not in receiver.received[0].body


@pytest.mark.parametrize(("size", "omitted"), [(16 * 1024, False), (16 * 1024 + 1, True)])
def test_a_result_over_16_kib_is_left_out(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, size: int, omitted: bool
) -> None:
    """Counted in bytes of its JSON; the message says so, and the document still has it."""
    result = b'"' + b"x" * (size - 2) + b'"'
    job_id = ended(deployment, client, receiver.url(), Outcome.succeeded(result))
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    body = json.loads(receiver.received[0].body)
    assert body.get("result_omitted", False) is omitted
    assert ("result" in body) is not omitted
    assert len(document(client, job_id)["result"]) == size - 2


def test_every_secret_signs_and_any_of_them_verifies(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """Judged by the reference library of Standard Webhooks, with the raw bytes."""
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, AJ_WEBHOOK_SECRETS=",".join(SECRETS)):
        wait_for_state(client, job_id, "delivered")
    [got] = receiver.received
    assert len(got.headers["webhook-signature"].split(" ")) == 2
    for secret in SECRETS:
        assert Webhook(secret).verify(got.body, got.headers)["job_id"] == job_id


def test_without_a_secret_there_is_no_signature(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """The id and the timestamp are there all the same."""
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    headers = receiver.received[0].headers
    assert "webhook-signature" not in headers
    assert headers["webhook-id"]
    assert abs(int(headers["webhook-timestamp"]) - clock.now_ms() / 1000) < 60
    assert headers["user-agent"].startswith("aj/")


def test_the_receiver_sees_the_final_status_when_it_looks(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """A GET from inside the receiver never meets a job that still runs."""
    seen: list[dict[str, Any]] = []

    def look(got: Received) -> Answer:
        seen.append(document(deployment.client(), json.loads(got.body)["job_id"]))
        return 200, {}

    receiver.answer = look
    with delivering(deployment):
        job_ids = [run(deployment, client, n=n, callback_url=receiver.url())["job_id"] for n in range(5)]
        for job_id in job_ids:
            wait_for_state(client, job_id, "delivered")
    assert [(each["job_id"], each["status"], each["result"]) for each in seen] == [
        (job_id, "succeeded", n * n) for n, job_id in enumerate(job_ids)
    ]
