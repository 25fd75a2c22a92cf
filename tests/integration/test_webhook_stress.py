"""Webhooks where many receivers are dead, or do all they can to hold a deliverer; and a secret that is replaced."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from flask.testing import FlaskClient

from aj import clock
from aj.egress import host_of
from aj.errors import SignatureInvalid
from aj.job import Outcome, Submission, new_job_id
from aj.signature import decode_secret, verify
from aj.store import Claim, End, Keys, Place
from aj.webhook import webhook_for
from tests.conftest import Deployment
from tests.support.deliveries import deliveries, delivering, ended, state, wait_for_state
from tests.support.inside import jobs_of
from tests.support.receiver import Received, Receiver
from tests.support.waiting import wait_until
from tests.unit import egress_receivers
from tests.unit.egress_receivers import Script, answering, deaf, dripping, flooding, silent

# -- receivers that hold on ----------------------------------------------------------------------------------

HOLDING: dict[str, Script] = {
    "silent": silent,
    "deaf": deaf,
    "dripping a status line": dripping(b"HTTP/1.1 200 ", b"O"),
    "dripping headers": dripping(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", every_s=0.3),
    "endless interim answers": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n", every_s=0.01),
}
SPITEFUL: dict[str, Script] = {
    "a header line without end": flooding(b"HTTP/1.1 200 OK\r\nX-A: ", b"b" * 65_536),
    "headers without end": flooding(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 1000),
    "one header of 10 MB": answering(b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 10_000_000 + b"\r\n\r\n"),
}
ANSWERED: dict[str, Script] = {
    "a body without end": flooding(b"HTTP/1.1 200 OK\r\n\r\n", b"b" * 65_536),
    "a dripping body": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"b", every_s=0.3),
}


def attempted(deployment: Deployment, client: FlaskClient, script: Script, wanted: str) -> float:
    """Seconds until the only attempt for a receiver that plays `script` was recorded; its time limit is 1 s."""
    with egress_receivers.receiving(script) as receiver:
        job_id = ended(deployment, client, receiver.url)
        begun_s = time.monotonic()
        with delivering(deployment, AJ_CALLBACK_TIMEOUT_S="1", AJ_CALLBACK_SCHEDULE_S="0"):
            wait_for_state(client, job_id, wanted)
            took_s = time.monotonic() - begun_s
    assert receiver.connections == 1
    return took_s


@pytest.mark.parametrize("script", HOLDING.values(), ids=HOLDING.keys())
def test_an_attempt_ends_at_its_time_limit(deployment: Deployment, client: FlaskClient, script: Script) -> None:
    """And is recorded as one without an answer, whatever the receiver does to hold on."""
    assert 0.9 < attempted(deployment, client, script, "exhausted") < 3


@pytest.mark.parametrize("script", SPITEFUL.values(), ids=SPITEFUL.keys())
def test_an_answer_that_is_too_much_is_none(deployment: Deployment, client: FlaskClient, script: Script) -> None:
    """It is given up when it passes the bounds of HTTP, not read to its end."""
    assert attempted(deployment, client, script, "exhausted") < 3


@pytest.mark.parametrize("script", ANSWERED.values(), ids=ANSWERED.keys())
def test_a_body_that_does_not_end_is_an_answer_all_the_same(
    deployment: Deployment, client: FlaskClient, script: Script
) -> None:
    """The status was 200: the webhook arrived, and is not sent again."""
    assert attempted(deployment, client, script, "delivered") < 3


# -- many that are dead --------------------------------------------------------------------------------------

TIMEOUT_S = 4


@contextmanager
def dead_receivers(hosts: int, ports_of_one: int) -> Iterator[list[str]]:
    """URLs of receivers that take a connection and say nothing: one on each of many hosts, many on one host."""
    with ExitStack() as open_:
        addresses = [f"127.0.1.{number}" for number in range(1, hosts + 1)] + ["127.0.0.2"] * ports_of_one
        listening = [socket.create_server((address, 0), backlog=1024) for address in addresses]
        for each in listening:
            open_.enter_context(each)
        yield ["http://{}:{}/hook".format(*each.getsockname()[:2]) for each in listening]


def owe(deployment: Deployment, *urls: str) -> None:
    """A job for each URL that has just ended and has its webhook in the outbox, with the least that it takes."""
    jobs, place = jobs_of(deployment), Place(deployment.queue, 60, 3600, 10**6)
    for url in urls:
        claim = Claim(job_id := new_job_id(clock.now_ms()), f"execution of {job_id}")
        jobs.submit(job_id, Submission("square", {"n": 1}, url), place, None)
        job, now_ms = jobs.start(claim, 60, [])
        over = job.ended(Outcome.succeeded(b"1"), now_ms, 3600)
        jobs.finish(claim, End(over, (3600, 7200), webhook_for(over, host_of(url), 0.0)), [])


@pytest.mark.parametrize(
    ("owed", "hosts", "is_known"), [(1000, 8, False), (400, 40, True)], ids=["8-hosts", "40-hosts"]
)
def test_many_deliveries_to_the_dead_do_not_hold_back_the_living(
    deployment: Deployment, receiver: Receiver, owed: int, hosts: int, is_known: bool
) -> None:
    """50 webhooks that were owed after them arrive at once: at a new receiver beside a few dead hosts, and at one
    that has answered before beside more of them than a deliverer has hands. Dead ports of one host count as one.
    """
    keys = Keys(deployment.settings.prefix)
    with dead_receivers(hosts, ports_of_one=4) as dead:
        owe(deployment, *(dead[number % len(dead)] for number in range(owed)))
        if is_known:
            deployment.redis.set(keys.answers("127.0.0.1"), 1, ex=600)
        with delivering(deployment, AJ_CALLBACK_TIMEOUT_S=str(TIMEOUT_S)):
            busy = [keys.busy(host_of(url)) for url in dead]
            wanted = min(24, len(set(busy)))
            wait_until(lambda: deployment.redis.exists(*set(busy)) == wanted, what="dead receivers that hold on")
            begun_s = time.monotonic()
            owe(deployment, *[receiver.url()] * 50)
            wait_until(lambda: len(receiver.received) == 50, TIMEOUT_S, "50 webhooks for the living receiver")
            took_s = time.monotonic() - begun_s
    assert took_s < TIMEOUT_S / 2, f"the last one arrived after {took_s:.2f} s"
    assert all(deployment.redis.zcard(each) <= 1 for each in busy)


def test_receivers_that_refuse_do_not_hold_back_the_living(deployment: Deployment, receiver: Receiver) -> None:
    """A refused connection is over in a moment, so 300 of them are soon tried; the 50 behind them do not wait."""
    with dead_receivers(8, 4) as once:
        closed = list(once)
    owe(deployment, *(closed[number % len(closed)] for number in range(300)))
    with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0,600"):
        begun_s = time.monotonic()
        owe(deployment, *[receiver.url()] * 50)
        wait_until(lambda: len(receiver.received) == 50, what="50 webhooks for the living receiver")
        assert time.monotonic() - begun_s < 3
        wait_until(lambda: not untried(deployment), what="a first attempt for each of the others")


def untried(deployment: Deployment) -> list[str]:
    return [each for each in deliveries(deployment) if deployment.redis.hget(each, "attempts") == b"0"]


# -- secrets and TLS -----------------------------------------------------------------------------------------

OLD, NEW = "whsec_" + "dGhlIG9sZCBzZWNyZXQgb2YgMjYgYnl0ZXM=", "whsec_" + "dGhlIG5ldyBzZWNyZXQgb2YgMjYgYnl0ZXM="


def test_a_secret_is_replaced_while_a_delivery_waits(
    deployment: Deployment, client: FlaskClient, receiver: Receiver
) -> None:
    """Old, both, new: each attempt has the same id and bytes, and is signed with what the deliverer has by then."""
    statuses = iter([500, 500, 200])
    receiver.answer = lambda _: (next(statuses), {})
    job_id = ended(deployment, client, receiver.url())
    for count, secrets in enumerate((OLD, f"{NEW},{OLD}", NEW), start=1):
        with delivering(deployment, AJ_WEBHOOK_SECRETS=secrets, AJ_CALLBACK_SCHEDULE_S="0,0.2,0.2"):
            wait_until(partial(has_attempts, client, job_id, count), what="the attempt and its record")
    assert state(client, job_id)["state"] == "delivered"
    assert len({(each.headers["webhook-id"], each.body) for each in receiver.received}) == 1
    verified = [[verifies(each, secret) for secret in (OLD, NEW)] for each in receiver.received]
    assert verified == [[True, False], [True, True], [False, True]]


def has_attempts(client: FlaskClient, job_id: str, count: int) -> bool:
    return bool(state(client, job_id)["attempts"] == count)


def verifies(received: Received, secret: str) -> bool:
    """Whether a receiver that knows `secret` only takes it."""
    try:
        verify([decode_secret(secret)], received.headers, received.body, clock.now_ms() / 1000)
    except SignatureInvalid:
        return False
    return True


def test_a_receiver_without_proper_tls_is_tried_again(deployment: Deployment, client: FlaskClient) -> None:
    """Nothing is sent to it in clear, and the document shows no status, since there was no answer."""

    def answer_in_clear(receiver: egress_receivers.Receiver, talking: socket.socket) -> None:
        receiver.requests.append(talking.recv(65_536))
        talking.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    with egress_receivers.receiving(answer_in_clear) as receiver:
        job_id = ended(deployment, client, receiver.url.replace("http:", "https:"))
        with delivering(deployment, AJ_CALLBACK_SCHEDULE_S="0,0"):
            shown = wait_for_state(client, job_id, "exhausted")
    assert shown == {"state": "exhausted", "attempts": 2}
    assert len(receiver.requests) == 2
    assert not any(b"webhook-id" in each for each in receiver.requests)
