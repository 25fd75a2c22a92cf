"""A caller's trace goes with its job from the submission to the webhook, and is told to nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient
from standardwebhooks.webhooks import Webhook

from tests.conftest import Deployment
from tests.support.deliveries import QUICK, answers, delivering, wait_for_state
from tests.support.inside import our_hash
from tests.support.jobs import document, work_off
from tests.support.receiver import Receiver

SECRET = "whsec_" + "bmV3ZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-00f067aa0ba902b7-00"
LATER = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"


def submit(client: FlaskClient, trace: str, key: str | None = None, **members: Any) -> str:
    """The id of a job that was submitted as part of a trace."""
    headers = {"traceparent": trace} | ({} if key is None else {"Idempotency-Key": key})
    answer = client.post("/jobs", json={"n": 5, **members}, headers=headers)
    assert answer.status_code == 202, answer.text
    return str((answer.json or {})["job_id"])


def sent(receiver: Receiver) -> list[str | None]:
    """The header of each webhook that came."""
    return [got.headers.get("traceparent") for got in receiver.received]


@pytest.mark.parametrize("trace", [TRACE, LATER])
def test_each_attempt_of_the_webhook_carries_the_header_as_it_came(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, trace: str
) -> None:
    """So does one that is sent again by hand; the signature holds, since it is over the body."""
    receiver.answer = answers((500, {}), (503, {}))
    job_id = submit(client, trace, callback_url=receiver.url())
    work_off(deployment)
    with delivering(deployment, **QUICK, AJ_WEBHOOK_SECRETS=SECRET):
        wait_for_state(client, job_id, "delivered")
        assert client.post(f"/jobs/{job_id}/deliveries").status_code == 202
        wait_for_state(client, job_id, "delivered")
    assert sent(receiver) == [trace] * 4
    for got in receiver.received:
        Webhook(SECRET).verify(got.body, got.headers)


def test_a_job_that_is_cancelled_in_the_queue_keeps_its_trace(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """No worker ever saw it."""
    job_id = submit(client, TRACE, callback_url=receiver.url())
    assert client.post(f"/jobs/{job_id}/cancel").status_code == 200
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    assert sent(receiver) == [TRACE]


def test_a_replay_keeps_the_trace_of_the_first_submission(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """It is no part of the payload, and the job is the first one's."""
    job_id = submit(client, TRACE, key="k", callback_url=receiver.url())
    assert submit(client, OTHER, key="k", callback_url=receiver.url()) == job_id
    work_off(deployment)
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    assert sent(receiver) == [TRACE]


@pytest.mark.parametrize("trace", ["", "nonsense", f"{TRACE}-more", f"{TRACE}, {TRACE}", TRACE.upper()])
def test_what_is_malformed_is_passed_over(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, trace: str
) -> None:
    """The job runs, and its webhook goes out, as without."""
    job_id = submit(client, trace, callback_url=receiver.url())
    assert b"traceparent" not in our_hash(deployment, job_id)
    work_off(deployment)
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    assert sent(receiver) == [None]


def test_two_header_lines_are_malformed(deployment: Deployment, client: FlaskClient) -> None:
    """A server joins them with a comma, and neither can be told to be the right one."""
    answer = client.post("/jobs", json={"n": 5}, headers=[("traceparent", TRACE), ("traceparent", TRACE)])
    assert b"traceparent" not in our_hash(deployment, (answer.json or {})["job_id"])


def test_no_document_shows_the_trace(deployment: Deployment, client: FlaskClient, receiver: Receiver) -> None:
    """It is the caller's, who has it, and the operator's, who has the log."""
    job_id = submit(client, TRACE, callback_url=receiver.url())
    before = document(client, job_id)
    work_off(deployment)
    with delivering(deployment):
        wait_for_state(client, job_id, "delivered")
    pages = [client.get(path).text for path in (f"/jobs/{job_id}", "/jobs", f"/jobs/{job_id}/deliveries")]
    assert not [each for each in (str(before), *pages, str(receiver.received[0].body)) if TRACE[3:35] in each]
