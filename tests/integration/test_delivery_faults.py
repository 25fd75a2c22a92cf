"""Receivers that are dead or silent, deliverers that die, and the share of each."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.errors import StoreUnavailable
from aj.store import Attempt, Delivery, Keys, Outbox
from aj.store.outbox import HOST_SHARE
from tests.conftest import Deployment
from tests.support.deliveries import (
    QUICK,
    Answer,
    delivering,
    delivering_from,
    ended,
    outbox_indexes,
    outbox_of,
    wait_for_state,
)
from tests.support.receiver import Received, Receiver
from tests.support.waiting import wait_until
from tests.unit import egress_receivers


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

    def turn(
        self, made: Sequence[tuple[Delivery, Attempt]], most: int, lease_s: float, most_doubtful: int | None = None
    ) -> tuple[list[Delivery], float | None]:
        kept = made[1:] if made and self.lost == 0 else made
        self.lost += len(made) - len(kept)
        return super().turn(kept, most, 0.2, most_doubtful)


def test_a_crash_between_sending_and_recording_sends_again(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """The receiver gets the same id and the same bytes, and can drop the second one."""
    job_id = ended(deployment, client, receiver.url())
    with delivering_from(outbox_of(deployment, Forgetful), deployment, **QUICK):
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


def test_one_delivery_whose_job_is_broken_does_not_hold_up_the_others(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """Attempts are recorded together; where that fails, each is recorded by itself."""
    job_ids, keys = [ended(deployment, client, receiver.url()) for _ in range(12)], Keys(deployment.settings.prefix)
    broken = job_ids.pop(5)
    deployment.redis.set(keys.job(broken), "no hash", ex=60)
    with delivering(deployment):
        for job_id in job_ids:
            wait_for_state(client, job_id, "delivered")
        wait_until(lambda: outbox_indexes(deployment) == [], what="an end of the broken one, too")
    assert len(receiver.received) == 12
    deployment.redis.delete(keys.delivery(broken))


def test_a_store_that_is_away_for_a_moment_loses_no_record(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """What was sent meanwhile is recorded when the store is back, and not sent again."""

    class Away(Outbox):
        failures = 3

        def turn(self, made: Sequence[tuple[Delivery, Attempt]], *more: Any) -> tuple[list[Delivery], float | None]:
            if made and self.failures:
                self.failures -= 1
                raise StoreUnavailable("away")
            return super().turn(made, *more)

    job_ids = [ended(deployment, client, receiver.url()) for _ in range(4)]
    with delivering_from(outbox_of(deployment, Away), deployment):
        found = [wait_for_state(client, job_id, "delivered")["attempts"] for job_id in job_ids]
    assert found == [1] * 4
    assert len(receiver.received) == 4


def test_a_hundred_deliveries_to_one_host_need_no_more_connections_than_its_share(
    deployment: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection is used again and again."""
    monkeypatch.setattr("aj.egress.LIFE_S", 600.0)

    def script(receiver: egress_receivers.Receiver, talking: socket.socket) -> None:
        while egress_receivers.read_request(receiver, talking):
            talking.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with egress_receivers.receiving(script) as receiver:
        job_ids = [ended(deployment, client, receiver.url) for _ in range(100)]
        with delivering(deployment):
            for job_id in job_ids:
                wait_for_state(client, job_id, "delivered")
        assert len(receiver.requests) == 100
        assert receiver.connections <= HOST_SHARE


def test_a_host_never_holds_more_than_its_share(
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
    assert 1 < most <= HOST_SHARE
    assert len(receiver.received) == 40
    assert outbox_indexes(deployment) == []


def test_a_dead_receiver_does_not_hold_back_a_living_one(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """300 webhooks wait for a receiver that says nothing; 20 that were owed later arrive at another at once."""
    with socket.create_server(("127.0.0.2", 0), backlog=64) as silent:
        dead = f"http://127.0.0.2:{silent.getsockname()[1]}/hook"
        for _ in range(300):
            ended(deployment, client, dead)
        with delivering(deployment, AJ_CALLBACK_TIMEOUT_S="2"):
            key = f"{deployment.settings.prefix}:out:busy:127.0.0.2"
            wait_until(lambda: deployment.redis.zcard(key) == 1, what="a full share of the dead receiver")
            begun_s = time.monotonic()
            for _ in range(20):
                ended(deployment, client, receiver.url())
            wait_until(lambda: len(receiver.received) == 20, 5, "20 webhooks for the living receiver")
            assert time.monotonic() - begun_s < 5


def test_an_outcome_wakes_an_idle_deliverer(
    deployment: Deployment, client: FlaskClient, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The webhook goes out at once, however long the deliverer would have slept."""
    monkeypatch.setattr("aj.deliver.LONGEST_NAP_S", 60.0)
    news = Keys(deployment.settings.prefix).news
    with delivering(deployment):
        wait_until(lambda: deployment.redis.pubsub_numsub(news)[0][1] == 1, what="a deliverer that listens")
        for count in range(1, 6):
            ended(deployment, client, receiver.url())
            wait_until(lambda: len(receiver.received) == count, what="the webhook")  # noqa: B023 - called here only
