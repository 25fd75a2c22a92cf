"""A caller may submit so many jobs at once, and then as many as the rate lets through."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aj.access import new_key
from aj.store import Keys
from tests.conftest import Deployment
from tests.support.jobs import submit
from tests.support.waiting import wait_until


def left(answer: Any) -> tuple[int, int]:
    """Submissions that are left, and the seconds until there are more."""
    match = re.fullmatch('"submissions";r=([0-9]+);t=([0-9]+)', answer.headers["RateLimit"])
    assert match, answer.headers["RateLimit"]
    return int(match[1]), int(match[2])


def test_each_submission_says_what_is_left(deploy: Callable[..., Deployment]) -> None:
    """And what the rate is, so that a client can pace itself before it is refused."""
    client = deploy(AJ_RATE="3/3600").client()
    answers = [client.post("/jobs", json={"n": n}) for n in range(4)]
    assert [each.status_code for each in answers] == [202, 202, 202, 429]
    assert {each.headers["RateLimit-Policy"] for each in answers} == {'"submissions";q=3;w=3600'}
    assert [left(each) for each in answers] == [(2, 1200), (1, 2400), (0, 1200), (0, 1200)]


def test_what_is_refused_says_when_to_come_back(deploy: Callable[..., Deployment]) -> None:
    """A problem document with a Retry-After that is not before the reset; nothing is stored."""
    deployment = deploy(AJ_RATE="1/3600")
    client = deployment.client()
    submit(client, n=1)
    before = deployment.keys()
    answer = client.post("/jobs", json={"n": 2}, headers={"Idempotency-Key": "k"})
    assert answer.content_type == "application/problem+json"
    assert (answer.json or {})["type"] == "urn:problem-type:aj:rate-exceeded"
    assert int(answer.headers["Retry-After"]) == left(answer)[1] == 3600
    assert deployment.keys() == before
    assert deployment.queued() == 1


def test_who_obeys_retry_after_is_let_through(deploy: Callable[..., Deployment]) -> None:
    """The quota comes back little by little: no crowd waits for one moment."""
    deployment = deploy(AJ_RATE="2/4")
    client = deployment.client()
    submit(client, n=1)
    submit(client, n=2)
    refused = client.post("/jobs", json={"n": 3})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "2")
    key = Keys(deployment.settings.prefix).rate("")
    before_ms: Any = deployment.redis.pttl(key)

    def passed() -> bool:
        remaining_ms: Any = deployment.redis.pttl(key)
        return bool(remaining_ms <= before_ms - 2000)

    wait_until(passed, what="two seconds on the store's clock")
    assert client.post("/jobs", json={"n": 3}).status_code == 202
    wait_until(lambda: not deployment.redis.exists(key), what="the whole quota")
    assert left(client.post("/jobs", json={"n": 4}))[0] == 1


def test_a_replay_and_a_refusal_use_nothing(deploy: Callable[..., Deployment]) -> None:
    """Whoever asks again for an answer that was lost is answered, also where nothing is left."""
    client = deploy(AJ_RATE="2/3600", AJ_MAX_QUEUED="2").client()
    first = submit(client, "k", n=1)
    key = {"Idempotency-Key": "k"}
    reused = client.post("/jobs", json={"n": 2}, headers=key)
    assert (reused.status_code, left(reused)[0]) == (422, 1)
    assert client.post("/jobs", json={"n": "x"}).status_code == 422
    submit(client, n=2)
    assert client.post("/jobs", json={"n": 3}).status_code == 429
    again = client.post("/jobs", json={"n": 1}, headers=key)
    assert (again.status_code, (again.json or {})["job_id"]) == (202, first)
    assert left(again)[0] == 0


def test_a_full_queue_uses_nothing(deploy: Callable[..., Deployment]) -> None:
    """It is not the caller's doing."""
    client = deploy(AJ_RATE="2/3600", AJ_MAX_QUEUED="1").client()
    submit(client, n=1)
    answers = [client.post("/jobs", json={"n": 2}) for _ in range(3)]
    assert [(each.status_code, left(each)[0]) for each in answers] == [(503, 1)] * 3


def test_racing_submissions_get_no_more_than_the_rate(deploy: Callable[..., Deployment]) -> None:
    """However many at once."""
    app = deploy(AJ_RATE="10/3600").client().application
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda n: app.test_client().post("/jobs", json={"n": n}).status_code, range(40)))
    assert sorted(answers) == [202] * 10 + [429] * 30


def test_callers_have_a_quota_each(deploy: Callable[..., Deployment]) -> None:
    """One that floods takes nothing from the others."""
    alice, bob = new_key(), new_key()
    client = deploy(AJ_RATE="1/3600", AJ_API_KEYS=f"alice:{alice[1]},bob:{bob[1]}").client()

    def status(key: str) -> int:
        return client.post("/jobs", json={"n": 1}, headers={"Authorization": f"Bearer {key}"}).status_code

    assert [status(alice[0]), status(alice[0]), status(bob[0]), status(bob[0])] == [202, 429, 202, 429]


@pytest.mark.parametrize("rate", ["1/86400", "1/1", "1000000/1", "9999999/86400", "7/3"])
def test_every_rate_that_is_accepted_works(deploy: Callable[..., Deployment], rate: str) -> None:
    """From one a day to a million a second: no number loses its last digits on the way."""
    client = deploy(AJ_RATE=rate).client()
    count, window_s = map(int, rate.split("/"))
    answer = client.post("/jobs", json={"n": 1})
    remaining, reset_s = left(answer)
    assert count - 1 <= remaining <= count
    assert 1 <= reset_s <= window_s


def test_without_a_rate_nothing_is_said(deployment: Deployment) -> None:
    """No field, no key."""
    answer = deployment.client().post("/jobs", json={"n": 1})
    assert not [name for name, _ in answer.headers if name.startswith("RateLimit")]
    assert deployment.keys("rate*") == []
