"""API keys: nothing of one caller can be read, changed, replayed or guessed by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.access import new_key
from aj.cli import main
from tests.conftest import Deployment
from tests.support.jobs import caller, work_off
from tests.support.waiting import wait_until

ALICE, BOB = new_key(), new_key()
KEYS = f"alice:{ALICE[1]},bob:{BOB[1]}"


@pytest.fixture
def guarded(deploy: Callable[..., Deployment]) -> Deployment:
    return deploy(AJ_API_KEYS=KEYS)


def submitted(client: FlaskClient, key: str | None = None, **members: Any) -> str:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = client.post("/jobs", json=members or {"n": 5}, headers=headers)
    assert answer.status_code == 202, answer.text
    return str((answer.json or {})["job_id"])


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        pytest.param(f"Bearer {ALICE[1]}", id="Bearer and the hash"),
        "Bearer nobody",
        pytest.param(f"Bearer {ALICE[0]}x", id="Bearer and more than the key"),
        "Bearer é",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/jobs"), ("GET", "/jobs"), ("GET", "/jobs/x"), ("DELETE", "/jobs/x")]
)
def test_without_a_known_key_the_answer_is_401(guarded: Deployment, header: str | None, method: str, path: str) -> None:
    """Also for ids that are none, so that nothing is learnt; the hash from the configuration is no key."""
    headers = {} if header is None else {"Authorization": header}
    answer = guarded.client().open(path, method=method, headers=headers, json={"n": 5} if method == "POST" else None)
    assert answer.status_code == 401
    assert answer.content_type == "application/problem+json"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert guarded.queued() == 0


@pytest.mark.parametrize(("path", "allowed"), [("/jobs", "GET"), ("/jobs/x", "DELETE"), ("/jobs/x/cancel", "POST")])
def test_a_refusal_of_options_is_a_problem_that_says_what_is_allowed(
    guarded: Deployment, path: str, allowed: str
) -> None:
    """Like every error, and like every answer to OPTIONS."""
    answer = guarded.client().options(path)
    assert (answer.status_code, answer.content_type) == (401, "application/problem+json")
    assert allowed in answer.headers["Allow"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_written_as_one_likes(guarded: Deployment, scheme: str) -> None:
    """Source: RFC 9110 section 11.1."""
    answer = guarded.client().post("/jobs", json={"n": 5}, headers={"Authorization": f"{scheme} {ALICE[0]}"})
    assert answer.status_code == 202


def test_a_job_is_nobody_elses(guarded: Deployment) -> None:
    """To another caller it is as if it had never been: the same 404, byte for byte, whatever is asked."""
    alice, bob = caller(guarded, ALICE[0]), caller(guarded, BOB[0])
    job_id = submitted(alice)
    unknown = "018f2b5e-0000-7000-8000-000000000000"
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/result"),
        ("POST", "/cancel"),
        ("GET", "/deliveries"),
        ("POST", "/deliveries"),
    ):
        refused = bob.open(f"/jobs/{job_id}{path}", method=method)
        assert refused.status_code == 404
        assert refused.data == bob.open(f"/jobs/{unknown}{path}", method=method).data
    assert alice.get(f"/jobs/{job_id}").status_code == 200
    assert (alice.get(f"/jobs/{job_id}").json or {})["status"] == "queued"


def test_a_list_holds_ones_own_jobs(guarded: Deployment) -> None:
    """Whatever the filter."""
    alice, bob = caller(guarded, ALICE[0]), caller(guarded, BOB[0])
    hers, his = submitted(alice), submitted(bob)
    assert [job["job_id"] for job in (alice.get("/jobs").json or {})["jobs"]] == [hers]
    assert [job["job_id"] for job in (bob.get("/jobs?status=queued").json or {})["jobs"]] == [his]


def test_idempotency_keys_of_two_callers_do_not_meet(guarded: Deployment) -> None:
    """The same text is two keys, and the other's payload is not compared."""
    alice, bob = caller(guarded, ALICE[0]), caller(guarded, BOB[0])
    assert submitted(alice, key="k", n=1) != submitted(bob, key="k", n=2)
    assert guarded.queued() == 2


def test_expired_and_deleted_jobs_stay_ones_own(deploy: Callable[..., Deployment]) -> None:
    """410 to their caller, 404 to the others."""
    deployment = deploy(AJ_API_KEYS=KEYS, AJ_RESULT_TTL_S="2")
    alice, bob = caller(deployment, ALICE[0]), caller(deployment, BOB[0])
    deleted, expired = submitted(alice), submitted(alice)
    work_off(deployment)
    assert alice.delete(f"/jobs/{deleted}").status_code == 204
    wait_until(lambda: alice.get(f"/jobs/{expired}").status_code == 410, what="the job's expiry")
    for job_id in (deleted, expired):
        assert alice.get(f"/jobs/{job_id}").status_code == 410
        assert bob.get(f"/jobs/{job_id}").status_code == 404
        assert bob.delete(f"/jobs/{job_id}").status_code == 404


def test_health_is_for_everybody(guarded: Deployment) -> None:
    """A load balancer has no key."""
    assert guarded.client().get("/healthz").status_code == 200
    assert guarded.client().get("/readyz").status_code in (200, 503)


def test_a_made_key_works(deploy: Callable[..., Deployment], capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the key for the caller and its hash for the configuration."""
    assert main(["key", "new", "shop.backend"]) == 0
    key, pair = (line.split()[-1] for line in capsys.readouterr().out.splitlines())
    assert submitted(caller(deploy(AJ_API_KEYS=pair), key))


def test_a_name_that_cannot_be_configured_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line."""
    assert main(["key", "new", "a:b,c"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
