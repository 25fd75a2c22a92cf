"""The outbox hands each webhook to one deliverer at a time, in small shares, and forgets none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.job import CallbackState
from aj.store import Attempt, Delivery, Keys, Outbox
from aj.store.outbox import HOST_SHARE
from tests.conftest import Deployment
from tests.support.deliveries import deliveries, ended, outbox_indexes, outbox_of
from tests.support.inside import our_hash
from tests.support.waiting import wait_until

HOOK = "http://127.0.0.1:9/hook"
LEASE_S = 30.0


@pytest.fixture
def outbox(deployment: Deployment) -> Outbox:
    return outbox_of(deployment)


@pytest.fixture
def owe(deployment: Deployment, client: FlaskClient) -> Callable[..., str]:
    """Ends a job with a webhook that is due at once, and gives its id."""
    return lambda url=HOOK: ended(deployment, client, url, AJ_CALLBACK_SCHEDULE_S="0")


def row(deployment: Deployment, job_id: str) -> dict[bytes, bytes]:
    found: Any = deployment.redis.hgetall(f"{deployment.settings.prefix}:out:job:{job_id}")
    return dict(found)


def claim_one(outbox: Outbox, lease_s: float = LEASE_S) -> Delivery:
    claimed, _ = outbox.claim(1, lease_s)
    assert len(claimed) == 1
    return claimed[0]


def has_answered(deployment: Deployment, *hosts: str) -> None:
    for host in hosts:
        deployment.redis.set(Keys(deployment.settings.prefix).answers(host), 1, ex=600)


def test_a_claimed_delivery_is_nobody_elses(outbox: Outbox, owe: Callable[..., str]) -> None:
    """A second deliverer finds nothing, and is told when the lease ends."""
    job_id = owe()
    claimed = claim_one(outbox)
    assert (claimed.job_id, claimed.url, claimed.host, claimed.attempt) == (job_id, HOOK, "127.0.0.1", 1)
    again, next_in_s = outbox.claim(10, LEASE_S)
    assert again == []
    assert next_in_s is not None
    assert LEASE_S - 5 < next_in_s <= LEASE_S


def test_a_lease_that_ended_gives_the_same_bytes_to_another(outbox: Outbox, owe: Callable[..., str]) -> None:
    """Only the attempt and the token are new."""
    owe()
    first = claim_one(outbox, 0.05)
    second = wait_until(lambda: outbox.claim(1, LEASE_S)[0], what="the end of the lease")[0]
    assert (second.job_id, second.url, second.body) == (first.job_id, first.url, first.body)
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.token != second.token


def test_a_record_whose_lease_went_to_another_counts_for_nothing(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str]
) -> None:
    """A deliverer that was frozen cannot put off or end what another one has taken over."""
    job_id = owe()
    late = claim_one(outbox, 0.05)
    wait_until(lambda: outbox.claim(1, LEASE_S)[0], what="the end of the lease")
    before = row(deployment, job_id), our_hash(deployment, job_id)
    for state in (CallbackState.PENDING, CallbackState.EXHAUSTED, CallbackState.GONE):
        outbox.record(late, Attempt(state, 500, late.attempt, 1000.0))
    assert (row(deployment, job_id), our_hash(deployment, job_id)) == before


def test_a_webhook_that_arrived_is_never_sent_again(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str]
) -> None:
    """Delivered is delivered, whoever brought it, and the other deliverer's record is ignored."""
    job_id = owe()
    late = claim_one(outbox, 0.05)
    other = wait_until(lambda: outbox.claim(1, LEASE_S)[0], what="the end of the lease")[0]
    outbox.record(late, Attempt(CallbackState.DELIVERED, 204, late.attempt, 0.0))
    outbox.record(other, Attempt(CallbackState.PENDING, 500, other.attempt, 0.0))
    assert row(deployment, job_id)[b"state"] == b"delivered"
    assert our_hash(deployment, job_id)[b"callback_state"] == b"delivered"
    assert our_hash(deployment, job_id)[b"callback_last_status"] == b"204"
    assert outbox.claim(10, LEASE_S) == ([], None)
    assert outbox_indexes(deployment) == []


def test_a_record_that_is_sent_twice_counts_once(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str]
) -> None:
    """The reply to the first one may be lost; the repeat changes nothing that matters."""
    job_id = owe()
    claimed = claim_one(outbox)
    for _ in range(2):
        outbox.record(claimed, Attempt(CallbackState.DELIVERED, 200, claimed.attempt, 0.0))
    assert our_hash(deployment, job_id)[b"callback_attempts"] == b"1"
    assert outbox_indexes(deployment) == []


def test_a_host_gets_its_share_and_no_more(deployment: Deployment, outbox: Outbox, owe: Callable[..., str]) -> None:
    """Over all deliverers together; each record frees one place."""
    has_answered(deployment, "127.0.0.1")
    for _ in range(HOST_SHARE + 3):
        owe()
    first, _ = outbox.claim(100, LEASE_S)
    assert len(first) == HOST_SHARE
    assert outbox.claim(100, LEASE_S)[0] == []
    outbox.record(first[0], Attempt(CallbackState.DELIVERED, 200, first[0].attempt, 0.0))
    assert len(outbox.claim(100, LEASE_S)[0]) == 1


def test_a_full_host_does_not_hide_another(outbox: Outbox, owe: Callable[..., str]) -> None:
    """Much that waits for one receiver leaves the others' webhooks due."""
    for _ in range(HOST_SHARE + 3):
        owe()
    outbox.claim(100, LEASE_S)
    job_id = owe("http://127.0.0.2:9/hook")
    assert claim_one(outbox).job_id == job_id


def test_a_host_that_has_not_answered_gets_one_at_a_time(outbox: Outbox, owe: Callable[..., str]) -> None:
    """Its first answer opens its share, and an attempt without one closes it again."""
    for _ in range(HOST_SHARE + 3):
        owe()
    first = claim_one(outbox)
    assert not first.host_answers
    assert outbox.claim(100, LEASE_S)[0] == []
    outbox.record(first, Attempt(CallbackState.PENDING, 500, 1, 100.0))
    second = outbox.claim(100, LEASE_S)[0]
    assert len(second) == HOST_SHARE
    assert all(each.host_answers for each in second)
    for each in second:
        outbox.record(each, Attempt(CallbackState.PENDING, None, 1, 100.0))
    assert len(outbox.claim(100, LEASE_S)[0]) == 1


def test_hosts_that_have_not_answered_share_what_they_are_given(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str]
) -> None:
    """One that answers is not behind them, and the claim does not call for an immediate repeat."""
    for number in range(2, 9):
        owe(f"http://127.0.0.{number}:9/hook")
    has_answered(deployment, "127.0.0.1")
    living = owe()
    first, _ = outbox.claim(100, LEASE_S, 3)
    assert [each.host_answers for each in first] == [False] * 3 + [True]
    assert first[-1].job_id == living
    second, next_in_s = outbox.claim(100, LEASE_S, 0)
    assert second == []
    assert next_in_s == pytest.approx(LEASE_S, abs=5)


def test_hosts_take_turns(outbox: Outbox, owe: Callable[..., str]) -> None:
    """One with many deliveries that have long been due does not come first for ever."""
    many = [owe() for _ in range(3)]
    one = owe("http://127.0.0.2:9/hook")
    order = []
    for _ in range(3):
        claimed = claim_one(outbox)
        order.append(claimed.job_id)
        outbox.record(claimed, Attempt(CallbackState.PENDING, None, 1, 100.0))
    assert order == [many[0], one, many[1]]


def test_a_claim_takes_no_more_than_it_asked_for(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str]
) -> None:
    """What a deliverer has no hands for stays for another one."""
    has_answered(deployment, *(f"127.0.0.{number}" for number in range(1, 4)))
    for last in (1, 1, 2, 2, 3):
        owe(f"http://127.0.0.{last}:9/hook")
    taken = [len(outbox.claim(2, LEASE_S)[0]) for _ in range(4)]
    assert taken == [2, 2, 1, 0]


def test_the_next_attempt_is_due_when_it_was_said(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str]
) -> None:
    """It is not to be had before, and the claim tells how long to wait."""
    job_id = owe()
    outbox.record(claim_one(outbox), Attempt(CallbackState.PENDING, 500, 1, 100.0))
    claimed, next_in_s = outbox.claim(10, LEASE_S)
    assert claimed == []
    assert next_in_s is not None
    assert 95 < next_in_s <= 100
    seconds, micros = deployment.redis.time()
    due_in_s = int(our_hash(deployment, job_id)[b"callback_next_ms"]) / 1000 - (seconds + micros / 1e6)
    assert abs(due_in_s - next_in_s) < 1


@pytest.mark.parametrize("state", [CallbackState.DELIVERED, CallbackState.GONE, CallbackState.EXHAUSTED])
def test_a_delivery_that_is_over_lives_as_long_as_its_job(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str], state: CallbackState
) -> None:
    """Nothing of it stays in the lists of what is due."""
    job_id = owe()
    outbox.record(claim_one(outbox), Attempt(state, None, 1, 0.0))
    prefix = deployment.settings.prefix
    ttl_ms: Any = deployment.redis.pttl(f"{prefix}:out:job:{job_id}")
    job_ttl_ms: Any = deployment.redis.pttl(f"{prefix}:job:{job_id}")
    assert abs(ttl_ms - job_ttl_ms) < 2000
    assert outbox_indexes(deployment) == []
    assert b"callback_next_ms" not in our_hash(deployment, job_id)


@pytest.mark.parametrize("state", list(CallbackState))
def test_a_delivery_does_not_bring_its_expired_job_back(
    deployment: Deployment, client: FlaskClient, outbox: Outbox, owe: Callable[..., str], state: CallbackState
) -> None:
    """The schedule may outlast the job's hash: its id stays expired, and a delivery that is over goes too."""
    job_id = owe()
    deployment.redis.delete(f"{deployment.settings.prefix}:job:{job_id}")
    outbox.record(claim_one(outbox), Attempt(state, 500, 1, 100.0))
    assert our_hash(deployment, job_id) == {}
    assert client.get(f"/jobs/{job_id}").status_code == 410
    assert (deliveries(deployment) == []) is (state is not CallbackState.PENDING)


def test_an_entry_whose_delivery_is_gone_is_dropped(
    deployment: Deployment, outbox: Outbox, owe: Callable[..., str]
) -> None:
    """The list of what is due does not keep what can never be sent."""
    job_id = owe()
    deployment.redis.delete(f"{deployment.settings.prefix}:out:job:{job_id}")
    assert outbox.claim(10, LEASE_S)[0] == []
    assert outbox_indexes(deployment) == []
