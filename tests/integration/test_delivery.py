"""A webhook arrives, signed, the same on every attempt, or is given up by the schedule; the job never changes."""

from __future__ import annotations

import email.utils
import json
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from flask.testing import FlaskClient
from standardwebhooks.webhooks import Webhook

from aj import clock
from aj.job import CallbackState, ErrorType, Outcome
from aj.store import Delivery, Outbox
from aj.store.outbox import ENDPOINT_SHARE
from tests.conftest import Deployment
from tests.support.inside import delivering, ended, outbox_indexes, outbox_of
from tests.support.jobs import document, run
from tests.support.receiver import Received, Receiver
from tests.support.waiting import wait_until

QUICK = {"AJ_CALLBACK_SCHEDULE_S": "0,0.1,0.1"}
SECRETS = ["whsec_" + "bmV3ZXIgc2VjcmV0IG9mIDI0IGJ5dGVz", "whsec_" + "b2xkZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"]
Answer = tuple[int, dict[str, str]]


def answers(*given: Answer) -> Callable[[Received], Answer]:
    """Gives these answers one after the other, then 200 for ever."""
    left = list(given)
    return lambda _: left.pop(0) if left else (200, {})


def state(client: FlaskClient, job_id: str) -> dict[str, Any]:
    return dict(document(client, job_id)["callback"])


def wait_for_state(client: FlaskClient, job_id: str, wanted: str) -> dict[str, Any]:
    """The callback's state once it is over."""
    wait_until(lambda: state(client, job_id)["state"] == wanted, what=f"a delivery that is {wanted}")
    return state(client, job_id)


def seconds_until(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() - clock.now_ms() / 1000


# -- the message ---------------------------------------------------------------------------------------------


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


# -- answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_means_delivered(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, status: int
) -> None:
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
    with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0,1.3,0", AJ_WEBHOOK_SECRETS=SECRETS[0]):
        wait_for_state(client, job_id, "delivered")
    assert len(receiver.received) == 3
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 1
    assert len({got.body for got in receiver.received}) == 1
    times = [int(got.headers["webhook-timestamp"]) for got in receiver.received]
    assert times[0] < times[1] <= times[2]
    for got in receiver.received:
        Webhook(SECRETS[0]).verify(got.body, got.headers)


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
    answer_client = client.post("/jobs", json={"n": 1, "callback_url": receiver.url()})
    assert answer_client.json is not None
    waiting = answer_client.json["job_id"]
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


# -- receivers that are not there ----------------------------------------------------------------------------


def test_no_answer_at_all_is_a_failed_attempt(deployment: Deployment, client: FlaskClient) -> None:
    """A port where nobody listens: the schedule goes on, without a status to show."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        job_id = ended(deployment, client, f"http://127.0.0.1:{closed.getsockname()[1]}/hook")
        with delivering(deployment, **QUICK):
            found = wait_for_state(client, job_id, "exhausted")
    assert found == {"state": "exhausted", "attempts": 3}


def test_a_silent_receiver_is_given_up_after_the_time_limit(deployment: Deployment, client: FlaskClient) -> None:
    """It accepts the connection and says nothing; the attempt ends when its time is over."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        job_id = ended(deployment, client, f"http://127.0.0.1:{silent.getsockname()[1]}/hook")
        begun_s = time.monotonic()
        with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0", AJ_CALLBACK_TIMEOUT_S="1"):
            wait_for_state(client, job_id, "exhausted")
        assert 0.9 < time.monotonic() - begun_s < 10


def test_an_address_that_is_not_allowed_any_more_is_never_connected_to(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """The setting of the deliverer decides at each attempt, not what was allowed at the submission."""
    job_id = ended(deployment, client, receiver.url())
    with delivering(deployment, AJ_CALLBACK_ALLOW="127.0.0.1:1", **QUICK):
        found = wait_for_state(client, job_id, "exhausted")
    assert found == {"state": "exhausted", "attempts": 3}
    assert receiver.received == []


# -- crashes and shares --------------------------------------------------------------------------------------


class Forgetful(Outbox):
    """A deliverer's outbox under leases of 0.2 s, whose first record is lost as in a crash after the sending."""

    lost = 0

    def claim(self, most: int, lease_s: float) -> tuple[list[Delivery], float | None]:
        return super().claim(most, 0.2)

    def record(self, delivery: Delivery, state: CallbackState, http_status: int | None, next_in_s: float) -> None:
        if self.lost == 0:
            self.lost += 1
            raise RuntimeError("the deliverer died here")
        super().record(delivery, state, http_status, next_in_s)


def test_a_crash_between_sending_and_recording_sends_again(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """The receiver gets the same id and the same bytes, and can drop the second one."""
    job_id = ended(deployment, client, receiver.url())
    outbox = outbox_of(deployment)
    outbox.__class__ = Forgetful
    with delivering(deployment, outbox, **QUICK):
        found = wait_for_state(client, job_id, "delivered")
    assert found == {"state": "delivered", "attempts": 2, "last_status": 200}
    first, second = receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    assert outbox_indexes(deployment) == []


def test_deliverers_that_always_die_do_not_send_for_ever(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """A lease that ended counts as an attempt, so a message that kills its deliverer is given up in the end."""
    job_id = ended(deployment, client, receiver.url())
    outbox = outbox_of(deployment)
    for _ in range(3):
        wait_until(lambda: outbox.claim(1, 0.02)[0], what="the end of the lease")
    with delivering(deployment, **QUICK):
        wait_for_state(client, job_id, "exhausted")
    assert receiver.received == []


def test_an_endpoint_never_holds_more_than_its_share(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """Two deliverers together bring no more than four at a time to one receiver, and yet all of them."""
    lock, held, most = threading.Lock(), 0, 0

    def count(_: Received) -> Answer:
        nonlocal held, most
        with lock:
            held += 1
            most = max(most, held)
        threading.Event().wait(0.03)
        with lock:
            held -= 1
        return 200, {}

    receiver.answer = count
    job_ids = [ended(deployment, client, receiver.url()) for _ in range(40)]
    with delivering(deployment), delivering(deployment):
        for job_id in job_ids:
            wait_for_state(client, job_id, "delivered")
    assert most == ENDPOINT_SHARE
    assert len(receiver.received) == 40
    assert outbox_indexes(deployment) == []


def test_a_dead_receiver_does_not_hold_back_a_living_one(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """300 webhooks wait for a receiver that says nothing; 20 that were owed later arrive at another at once."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        dead = f"http://127.0.0.1:{silent.getsockname()[1]}/hook"
        for _ in range(300):
            ended(deployment, client, dead)
        with delivering(deployment, AJ_CALLBACK_TIMEOUT_S="2"):
            key = f"{deployment.settings.prefix}:out:busy:127.0.0.1:{silent.getsockname()[1]}"
            wait_until(lambda: deployment.redis.zcard(key) == ENDPOINT_SHARE, what="a full share of the dead receiver")
            begun_s = time.monotonic()
            for _ in range(20):
                ended(deployment, client, receiver.url())
            wait_until(lambda: len(receiver.received) == 20, 5, "20 webhooks for the living receiver")
            assert time.monotonic() - begun_s < 5
