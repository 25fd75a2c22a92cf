"""An idempotency key stands for one payload and one job, from the submission to the end of the key's life."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from aj.job import Submission, new_job_id
from aj.store import Jobs, Key, Keys, Place, Verdict, connect
from tests.conftest import Deployment
from tests.support.jobs import document, run, submit, work_off
from tests.support.processes import running_worker
from tests.support.waiting import wait_until


def post(client: FlaskClient, key: str, **members: Any) -> TestResponse:
    """A submission under `key`."""
    return client.post("/jobs", json=members, headers={"Idempotency-Key": key})


def assert_replayed(answer: TestResponse, first: TestResponse) -> None:
    """The first answer again, and a mark that it is."""
    assert answer.status_code == 202
    assert answer.data == first.data
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert {**answer.headers, "Idempotent-Replayed": ""} == {**first.headers, "Idempotent-Replayed": ""}


def assert_refused(answer: TestResponse) -> None:
    """The key stands for another payload."""
    assert answer.status_code == 422
    assert (answer.json or {})["type"].endswith("idempotency-key-reused")


def test_a_repeated_submission_gets_the_first_answer(deployment: Deployment, client: FlaskClient) -> None:
    """Byte for byte the same body, the same Location, and one job."""
    first = post(client, "k", n=5)
    assert_replayed(post(client, "k", n=5), first)
    assert_replayed(post(deployment.client(), "k", n=5), first)
    assert deployment.queued() == 1


def test_quoted_and_bare_are_one_key(deployment: Deployment, client: FlaskClient) -> None:
    """`"k"` as a structured field and `k` as many clients write it."""
    first = post(client, '"k\\\\1"', n=5)
    assert_replayed(post(client, "k\\1", n=5), first)
    assert deployment.queued() == 1


def test_keys_differ_by_case(client: FlaskClient) -> None:
    """A key is opaque."""
    assert submit(client, key="k", n=5) != submit(client, key="K", n=5)


def test_the_payload_is_the_value_and_not_its_spelling(client: FlaskClient) -> None:
    """White space, the order of members, escapes, defaults left out and nulls of ours do not matter."""
    same = [
        b'{"task": "fail", "text": "\xc3\xbc", "metadata": {"a": 1, "b": 2}}',
        b'{"metadata":{"b":2,"a":1},"text":"\\u00fc","task":"fail"}',
        b'\n{"task": "fail", "text": "\xc3\xbc", "public": false, "metadata": {"a": 1, "b": 2}}\t',
        b'{"task": "fail", "text": "\xc3\xbc", "callback_url": null, "metadata": {"a": 1, "b": 2}}',
    ]
    answers = [
        client.post("/jobs", data=body, content_type="application/json", headers={"Idempotency-Key": "k"})
        for body in same
    ]
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [None, "true", "true", "true"]
    assert len({answer.data for answer in answers}) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"text": "y"},
        {"public": True},
        {"metadata": {"a": 2}},
        {"metadata": None},
        {"callback_url": "http://127.0.0.1:9/"},
        {"task": "exit_with", "text": None, "code": 0},
    ],
    ids=json.dumps,
)
def test_every_member_belongs_to_the_payload(
    deployment: Deployment, client: FlaskClient, other: dict[str, Any]
) -> None:
    """What the caller would get differs, so the answer to the one cannot be given for the other."""
    payload = {"task": "fail", "text": "x", "metadata": {"a": 1}}
    post(client, "k", **payload)
    changed = {name: value for name, value in {**payload, **other}.items() if value is not None}
    assert_refused(post(client, "k", **changed))
    assert deployment.queued() == 1


def test_a_key_keeps_its_payload_in_every_state(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """Queued, running, ended: the same payload is answered as at first, another one refused."""
    go = folder / "go"
    payload = {"task": "wait_for_file", "path": str(go)}
    first = post(client, "k", **payload)
    location = first.headers["Location"]

    def check(status: str) -> None:
        assert (client.get(location).json or {})["status"] == status
        assert_replayed(post(client, "k", **payload), first)
        assert_refused(post(client, "k", n=5))
        assert (client.get(location).json or {})["status"] == status

    check("queued")
    with running_worker(deployment.env, folder, "--only", "jobs"):
        wait_until(lambda: (client.get(location).json or {})["status"] == "running", what="a running job")
        check("running")
        go.touch()
        wait_until(lambda: (client.get(location).json or {})["status"] != "running", what="an ended job")
        check("succeeded")
    assert deployment.queued() == 0


def test_a_failed_job_uses_its_key_up(deployment: Deployment, client: FlaskClient) -> None:
    """The failure is the answer; a client that wants another run takes another key."""
    first = post(client, "k", task="fail", text="x")
    work_off(deployment)
    assert document(client, (first.json or {})["job_id"])["status"] == "failed"
    assert_replayed(post(client, "k", task="fail", text="x"), first)
    assert_refused(post(client, "k", task="fail", text="y"))
    assert deployment.queued() == 0


def test_a_key_outlives_its_job(deploy: Callable[..., Deployment]) -> None:
    """When the result is past its life the same 202 comes still; the GET tells the rest, and nothing runs again."""
    deployment = deploy(AJ_RESULT_TTL_S="1")
    client = deployment.client()
    first = post(client, "k", n=5)
    work_off(deployment)
    wait_until(lambda: client.get(first.headers["Location"]).status_code == 410, what="an expired result")
    assert_replayed(post(client, "k", n=5), first)
    assert_refused(post(client, "k", n=6))
    assert client.get(first.headers["Location"]).status_code == 410
    assert deployment.queued() == 0


def test_a_key_lives_from_the_submission(deploy: Callable[..., Deployment]) -> None:
    """A replay does not lengthen its life; after it the key is free for a new job."""
    deployment = deploy(AJ_RESULT_TTL_S="1", AJ_IDEMPOTENCY_TTL_S="1")
    client = deployment.client()
    first_id = submit(client, key="k", n=5)
    record = deployment.keys("idem:*")[0]

    def replayed() -> bool:
        return post(client, "k", n=5).headers.get("Idempotent-Replayed") == "true"

    assert replayed()
    assert 0 < int(str(deployment.redis.pttl(record))) <= 1000
    wait_until(lambda: not replayed(), within_s=3, what="the end of the key's life")
    assert deployment.queued() == 2
    assert submit(client, key="k", n=5) != first_id


def test_a_refused_submission_does_not_use_its_key_up(deployment: Deployment, client: FlaskClient) -> None:
    """Not for what is wrong in it, and not for a queue that is full."""
    assert post(client, "k", n="5").status_code == 422
    assert post(client, "k", task="nobody").status_code == 422
    full = deployment.client(AJ_MAX_QUEUED="1")
    submit(full, n=1)
    assert post(full, "k", n=5).status_code == 503
    answer = post(client, "k", n=6)
    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer.headers


def test_two_deployments_do_not_share_keys(deploy: Callable[..., Deployment]) -> None:
    """The prefix divides them, also where they share a server and a queue."""
    one = deploy()
    other = deploy(AJ_QUEUES=one.queue)
    assert submit(one.client(), key="k", n=5) != submit(other.client(), key="k", n=6)


def test_the_text_of_a_key_is_in_no_key_of_the_store(deployment: Deployment, client: FlaskClient) -> None:
    """It is hashed, so that no client can aim at another key or leave a secret in a name."""
    job_id = submit(client, key="t0p-s3cret:*", n=5)
    run(deployment, client, n=6)
    names: Any = list(deployment.redis.scan_iter(count=1000))
    assert not [name for name in names if b"s3cret" in name]
    assert [name for name in names if job_id.encode() in name]


def test_two_callers_do_not_share_keys(deployment: Deployment) -> None:
    """A key belongs to one caller, and no choice of text makes it another one's."""
    jobs = Jobs(connect(deployment.settings.redis_url), Keys(deployment.settings.prefix))
    place = Place(deployment.queue, timeout_s=10, result_ttl_s=10, max_queued=10)
    owned = [("a", "k"), ("b", "k"), ("a:b", "k"), ("a", "b:k")]
    submissions = [(Submission("square", {"n": 5}, owner=owner), Key(text, 60)) for owner, text in owned]
    verdicts = [jobs.submit(new_job_id(1), submission, place, key).verdict for submission, key in submissions]
    assert verdicts == [Verdict.CREATED] * 4


@pytest.mark.parametrize("key", [None, Key("k", 60)], ids=["without a key", "with a key"])
def test_a_command_that_is_sent_twice_queues_once(deployment: Deployment, key: Key | None) -> None:
    """The client library repeats a command whose reply was lost; both are answered alike."""
    jobs = Jobs(connect(deployment.settings.redis_url), Keys(deployment.settings.prefix))
    place = Place(deployment.queue, timeout_s=10, result_ttl_s=10, max_queued=1)
    job_id, submission = new_job_id(1), Submission("square", {"n": 5})
    answers = [jobs.submit(job_id, submission, place, key) for _ in range(2)]
    assert [(each.verdict, each.job_id) for each in answers] == [(Verdict.CREATED, job_id)] * 2
    assert deployment.queued() == 1
