"""A webhook arrives, or is given up by the schedule and the receiver's own word; the job never changes."""

from __future__ import annotations

import email.utils

import pytest
from flask.testing import FlaskClient
from standardwebhooks.webhooks import Webhook

from aj import clock
from tests.conftest import Deployment
from tests.support.deliveries import (
    QUICK,
    Answer,
    answers,
    delivering,
    ended,
    outbox_indexes,
    seconds_until,
    state,
    wait_for_state,
)
from tests.support.jobs import document
from tests.support.receiver import Received, Receiver
from tests.support.waiting import wait_until

SECRET = "whsec_" + "bmV3ZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_means_delivered(deployment: Deployment, client: FlaskClient, receiver: Receiver, status: int) -> None:
    """One attempt, and the document says how it went."""
    receiver.answer = answers((status, {}))
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, **QUICK):
        found = wait_for_state(client, job_id, "delivered")
    assert found == {"state": "delivered", "attempts": 1, "last_status": status}
    assert outbox_indexes(deployment) == []


def test_410_means_stop(deployment: Deployment, client: FlaskClient, receiver: Receiver) -> None:
    """The receiver is gone; the rest of the schedule is dropped."""
    receiver.answer = answers((500, {}), (410, {}))
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, **QUICK):
        found = wait_for_state(client, job_id, "gone")
    assert found == {"state": "gone", "attempts": 2, "last_status": 410}
    assert len(receiver.received) == 2
    assert outbox_indexes(deployment) == []


@pytest.mark.parametrize("status", [300, 400, 401, 404, 408, 409, 429, 500, 502, 503])
def test_any_other_answer_means_again(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, status: int
) -> None:
    """A receiver that refuses today may be mended by the next attempt."""
    receiver.answer = answers((status, {}))
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, **QUICK):
        found = wait_for_state(client, job_id, "delivered")
    assert found == {"state": "delivered", "attempts": 2, "last_status": 200}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, status: int
) -> None:
    """It counts as a failed attempt, so that nobody is led elsewhere by an answer."""
    receiver.answer = answers((status, {"Location": receiver.url("/elsewhere")}))
    job_id = ended(deployment, client, receiver.url("/hook"))
    with delivering(deployment, **QUICK):
        found = wait_for_state(client, job_id, "delivered")
    assert [got.path for got in receiver.received] == ["/hook", "/hook"]
    assert found["attempts"] == 2


def test_a_schedule_that_is_spent_ends_exhausted(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """As many attempts as the schedule has; the job itself is what it was."""
    receiver.answer = lambda _: (500, {})
    job_id = ended(deployment, client, receiver.url())
    before = document(client, job_id)
    with delivering(deployment, **QUICK):
        found = wait_for_state(client, job_id, "exhausted")
    assert found == {"state": "exhausted", "attempts": 3, "last_status": 500}
    assert len(receiver.received) == 3
    after = document(client, job_id)
    del before["callback"], after["callback"]
    assert after == before
    assert outbox_indexes(deployment) == []


def test_every_attempt_carries_the_same_id_and_bytes(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """Only the time and the signature over it are new, so that a late attempt is not taken for a replay."""
    receiver.answer = answers((500, {}), (500, {}))
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0,1.3,0", AJ_WEBHOOK_SECRETS=SECRET):
        wait_for_state(client, job_id, "delivered")
    assert len(receiver.received) == 3
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 1
    assert len({got.body for got in receiver.received}) == 1
    times = [int(got.headers["webhook-timestamp"]) for got in receiver.received]
    assert times[0] < times[1] <= times[2]
    for got in receiver.received:
        Webhook(SECRET).verify(got.body, got.headers)


def test_two_jobs_have_two_ids(deployment: Deployment, client: FlaskClient, receiver: Receiver) -> None:
    """A receiver drops repeats by the id, so no two messages may share one."""
    job_ids = [ended(deployment, client, receiver.url()) for _ in range(2)]
    with delivering(deployment):
        for job_id in job_ids:
            wait_for_state(client, job_id, "delivered")
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 2


# -- Retry-After and the state in between --------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_receiver_may_ask_for_time(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, status: int, form: str
) -> None:
    """Retry-After on 429 and 503 lengthens the delay, and the document says until when."""
    asked = "100" if form == "seconds" else email.utils.formatdate(clock.now_ms() / 1000 + 100, usegmt=True)
    receiver.answer = answers((status, {"Retry-After": asked}))
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, **QUICK):
        wait_until(lambda: state(client, job_id)["attempts"] == 1, what="the first attempt")
    found = state(client, job_id)
    assert (found["state"], found["last_status"]) == ("pending", status)
    assert 80 < seconds_until(found["next_attempt_at"]) < 102


@pytest.mark.parametrize(
    ("answer", "least_s", "most_s"),
    [
        ((503, {"Retry-After": "9999999"}), 86_000, 86_401),
        ((503, {"Retry-After": "1"}), 20, 40),
        ((503, {"Retry-After": "soon"}), 20, 40),
        ((500, {"Retry-After": "9999"}), 20, 40),
    ],
    ids=["a-day-at-most", "never-sooner", "nonsense", "not-on-500"],
)
def test_what_a_receiver_asks_for_has_bounds(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, answer: Answer, least_s: float, most_s: float
) -> None:
    """The schedule's own delay of 30 s, give or take a fifth, stands where the receiver says nothing of use."""
    receiver.answer = answers(answer)
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0,30"):
        wait_until(lambda: state(client, job_id)["attempts"] == 1, what="the first attempt")
    assert least_s < seconds_until(state(client, job_id)["next_attempt_at"]) < most_s


def test_a_short_time_that_was_asked_for_is_waited_and_no_longer(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """The second attempt comes a second after the first one, not at once."""
    times: list[float] = []

    def answer(_: Received) -> Answer:
        times.append(clock.monotonic_s())
        return (503, {"Retry-After": "1"}) if len(times) == 1 else (200, {})

    receiver.answer = answer
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0,0"):
        wait_for_state(client, job_id, "delivered")
    assert times[1] - times[0] >= 0.99


def test_the_document_shows_the_delivery_in_every_state(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """Before the end, when it is due, between attempts, and when it is over."""
    answer = client.post("/jobs", json={"n": 1, "callback_url": receiver.url()})
    assert answer.json is not None
    waiting = answer.json["job_id"]
    assert state(client, waiting) == {"state": "pending", "attempts": 0}
    job_id = ended(deployment, client, receiver.url(), AJ_CALLBACK_SCHEDULE_S="60")
    due = state(client, job_id)
    assert (due["state"], due["attempts"]) == ("pending", 0)
    assert 40 < seconds_until(due["next_attempt_at"]) < 75
    receiver.answer = answers((500, {}))
    other = ended(deployment, client, receiver.url())
    with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0,2"):
        wait_until(lambda: state(client, other)["attempts"] == 1, what="the first attempt")
        between = state(client, other)
        assert (between["state"], between["last_status"]) == ("pending", 500)
        assert 0 < seconds_until(between["next_attempt_at"]) < 2.5
        over = wait_for_state(client, other, "delivered")
    assert over == {"state": "delivered", "attempts": 2, "last_status": 200}
