"""The document is true: what every route really answers, well and badly, is what it promises, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from aj import JobsBlueprint, create_app, views_docs
from aj.access import new_key
from aj.job import ErrorType, Outcome
from aj.settings import Settings
from tests.conftest import Deployment
from tests.support.deliveries import delivering, ended, wait_for_state
from tests.support.jobs import run, submit, work_off
from tests.support.processes import free_port, running_worker
from tests.support.promised import Promised
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

NOBODYS = "018f2b5e-0000-7000-8000-000000000000"


class Held:
    """A client each of whose answers is held against the document."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client
        self.promised = Promised(client.get("/openapi.json").json or {})

    def __call__(self, method: str, path: str, status: int, **options: Any) -> TestResponse:
        answer = self.client.open(path, method=method, **options)
        assert answer.status_code == status, answer.text
        self.promised.check(answer)
        return answer


@pytest.fixture
def held(client: FlaskClient) -> Held:
    return Held(client)


def test_submissions_are_as_promised(held: Held) -> None:
    """Accepted, replayed and refused for every reason."""
    held("POST", "/jobs", 202, json={"n": 5, "metadata": {"a": 1}}, headers={"Idempotency-Key": "k"})
    held("POST", "/jobs", 202, json={"n": 5, "metadata": {"a": 1}}, headers={"Idempotency-Key": "k"})
    held("POST", "/jobs", 422, json={"n": 6}, headers={"Idempotency-Key": "k"})
    held("POST", "/jobs", 202, json={"n": 5}, headers={"Prefer": "wait=0"})
    held("POST", "/jobs", 400, data=b"{")
    held("POST", "/jobs", 400, json={"n": 5}, headers={"Idempotency-Key": ""})
    held("POST", "/jobs", 413, data=b"x" * 100_000)
    held("POST", "/jobs", 415, data=b"n=5", content_type="text/plain")
    held("POST", "/jobs", 422, json={"n": "5", "callback_url": "ftp://x", "metadata": []})
    held("POST", "/jobs", 422, json=[])


def test_what_only_a_worker_brings_is_as_promised(held: Held, deployment: Deployment, folder: Path) -> None:
    """Readiness, and 200 with the document for a submission that waits."""
    held("GET", "/readyz", 503)
    with running_worker(deployment.env, folder):
        held("POST", "/jobs", 200, json={"n": 5}, headers={"Prefer": "wait=20"})
        wait_until(lambda: held.client.get("/readyz").status_code == 200, what="readiness")
        held("GET", "/readyz", 200)


def test_every_way_to_stand_is_as_promised(held: Held, deployment: Deployment) -> None:
    """Queued, with everything a job may have, ended well and badly."""
    waiting = submit(held.client, n=1, metadata={"a": None}, callback_url="http://127.0.0.1:9/")
    held("GET", f"/jobs/{waiting}", 200)
    held("HEAD", f"/jobs/{waiting}", 200)
    good = run(deployment, held.client, task="report", fractions=[0.5])["job_id"]
    bad = run(deployment, held.client, task="fail", text="x")["job_id"]
    for job_id in (waiting, good, bad):
        etag = held("GET", f"/jobs/{job_id}", 200, headers={"Prefer": "wait=0"}).headers["ETag"]
        held("GET", f"/jobs/{job_id}", 304, headers={"If-None-Match": etag})
        held("GET", f"/jobs/{job_id}", 412, headers={"If-Match": '"x"'})
    etag = held("GET", f"/jobs/{good}/result", 200).headers["ETag"]
    held("GET", f"/jobs/{good}/result", 304, headers={"If-None-Match": etag})
    held("GET", f"/jobs/{bad}/result", 409)
    held("GET", f"/jobs/{submit(held.client, n=1)}/result", 409)


@pytest.mark.parametrize("kind", ErrorType)
def test_every_failure_is_as_promised(held: Held, deployment: Deployment, kind: ErrorType) -> None:
    """The error of each type."""
    job_id = ended(deployment, held.client, "http://127.0.0.1:9/", Outcome.failed(kind, "It went wrong."))
    held("GET", f"/jobs/{job_id}", 200)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("HEAD", ""),
        ("DELETE", ""),
        ("GET", "/result"),
        ("POST", "/cancel"),
        ("GET", "/deliveries"),
        ("POST", "/deliveries"),
    ],
)
def test_a_job_that_is_not_there_is_as_promised(deploy: Callable[..., Deployment], method: str, path: str) -> None:
    """Unknown, expired, deleted, and a store that is away."""
    deployment = deploy(AJ_RESULT_TTL_S="1")
    held = Held(deployment.client())
    job_id, deleted = (run(deployment, held.client, n=n)["job_id"] for n in (1, 2))
    held("DELETE", f"/jobs/{deleted}", 204)
    held("DELETE", f"/jobs/{deleted}", 204)
    wait_until(lambda: held.client.get(f"/jobs/{job_id}").status_code == 410, what="the job's expiry")
    held(method, f"/jobs/{NOBODYS}{path}", 404)
    held(method, f"/jobs/x{path}", 404)
    held(method, f"/jobs/{job_id}{path}", 410)
    if method != "DELETE":
        held(method, f"/jobs/{deleted}{path}", 410)
    away = Held(create_app(Settings.from_env(gone(deployment))).test_client())
    away(method, f"/jobs/{job_id}{path}", 503)


def test_what_needs_the_store_says_that_it_is_away(deployment: Deployment) -> None:
    """A submission, a list and readiness."""
    held = Held(create_app(Settings.from_env(gone(deployment))).test_client())
    held("POST", "/jobs", 503, json={"n": 5})
    held("GET", "/jobs", 503)
    held("GET", "/readyz", 503)


def test_a_full_queue_is_as_promised(deploy: Callable[..., Deployment]) -> None:
    """503 with Retry-After."""
    held = Held(deploy(AJ_MAX_QUEUED="1").client())
    held("POST", "/jobs", 202, json={"n": 5})
    held("POST", "/jobs", 503, json={"n": 5})


def test_what_is_done_to_jobs_is_as_promised(held: Held, deployment: Deployment) -> None:
    """Cancel, delete and their refusals, and lists with a next page."""
    ids = [submit(held.client, n=n) for n in range(3)]
    held("DELETE", f"/jobs/{ids[0]}", 409)
    held("POST", f"/jobs/{ids[0]}/cancel", 200)
    work_off(deployment)
    held("POST", f"/jobs/{ids[1]}/cancel", 409)
    page = held("GET", "/jobs?limit=2&status=succeeded&task=square", 200)
    assert "Link" not in page.headers
    assert "Link" in held("GET", "/jobs?limit=2", 200).headers
    held("GET", f"/jobs?cursor={ids[1]}", 200)
    held("GET", "/jobs?limit=0", 400)


def test_webhooks_and_their_attempts_are_as_promised(held: Held, deployment: Deployment, receiver: Receiver) -> None:
    """The message of each kind, a result that is left out, the log of attempts, and sending again."""
    receiver.answer = lambda _: (410, {})
    outcomes = {
        "job.succeeded": [Outcome.succeeded(b"null"), Outcome.succeeded(b'"' + b"x" * 20_000 + b'"')],
        "job.failed": [Outcome.cancelled()],
    }
    with delivering(deployment):
        for name, each in ((name, each) for name, some in outcomes.items() for each in some):
            job_id = ended(deployment, held.client, receiver.url(), each)
            wait_for_state(held.client, job_id, "gone")
            told = held.promised.document["webhooks"][name]["post"]
            held.promised.check_body(
                json.loads(receiver.received[-1].body), told["requestBody"]["content"]["application/json"]["schema"]
            )
            needed = {parameter["name"] for parameter in told["parameters"] if parameter["required"]}
            assert needed <= receiver.received[-1].headers.keys()
        held("GET", f"/jobs/{job_id}", 200)
        held("GET", f"/jobs/{job_id}/deliveries", 200)
        held("POST", f"/jobs/{job_id}/deliveries", 202)
        dead = ended(deployment, held.client, "http://127.0.0.1:9/", AJ_CALLBACK_SCHEDULE_S="0,600")
        wait_until(lambda: held("GET", f"/jobs/{dead}/deliveries", 200).json != {"attempts": []}, what="an attempt")
        held("GET", f"/jobs/{dead}", 200)
        held("POST", f"/jobs/{dead}/deliveries", 409)


def test_keys_are_as_promised(deploy: Callable[..., Deployment]) -> None:
    """401 on every route that is told to need one, and on no other."""
    key, digest = new_key()
    held = Held(deploy(AJ_API_KEYS=f"alice:{digest}").client())
    for path, item in held.promised.document["paths"].items():
        for method, operation in item.items():
            url = path.replace("{job_id}", NOBODYS).replace("{asset}", "swagger-ui.css")
            answer = held.client.open(url, method=method.upper())
            held.promised.check(answer)
            assert (answer.status_code == 401) == ("security" in operation), path
    held("POST", "/jobs", 202, json={"n": 5}, headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("path", ["/tasks", "/openapi.json", "/docs", "/docs/swagger-ui.css"])
def test_what_tells_of_the_api_is_as_promised_and_can_be_kept(held: Held, path: str) -> None:
    """With an ETag that saves the next reading."""
    etag = held("GET", path, 200).headers["ETag"]
    held("GET", path, 304, headers={"If-None-Match": etag})
    held("GET", path, 412, headers={"If-Match": '"x"'})
    held("HEAD", path, 200)


def test_the_rest_is_as_promised(held: Held) -> None:
    """Health, and a part that the page does not have."""
    held("GET", "/healthz", 200)
    held("GET", "/docs/nothing", 404)


def test_the_document_names_the_prefix_it_is_served_below(deployment: Deployment) -> None:
    """That of the blueprint and that of the server."""
    app = Flask("host")
    app.register_blueprint(JobsBlueprint(deployment.settings), url_prefix="/api")
    answer = app.test_client().get("/api/openapi.json", environ_overrides={"SCRIPT_NAME": "/shop"})
    assert (answer.json or {})["servers"] == [{"url": "/shop/api"}]


def test_the_page_needs_no_other_host(client: FlaskClient) -> None:
    """It names none, its policy allows none, and each part of it is served here."""
    page = client.get("/docs")
    policy = page.headers["Content-Security-Policy"]
    assert page.content_type == "text/html; charset=utf-8"
    assert "//" not in page.text
    assert policy.startswith("default-src 'none'; ")
    assert not [word for word in ("unsafe", "http", "*") if word in policy]
    parts = re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page.text)
    assert [client.get(f"/{part}").status_code for part in parts] == [200, 200]
    assert re.findall(r'url: "([^"]+)"', page.text) == ["openapi.json"]


def test_without_the_extra_the_page_says_what_it_needs(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """404 as a problem; the document is there all the same."""
    monkeypatch.setattr(views_docs, "PACKAGE", "a_package_that_is_not_installed")
    assert "flask-aj[docs]" in (client.get("/docs").json or {})["detail"]
    assert client.get("/docs").status_code == client.get("/docs/swagger-ui.css").status_code == 404
    assert client.get("/openapi.json").status_code == 200


def gone(deployment: Deployment) -> dict[str, str]:
    """The deployment's environment, with a store at which nobody listens."""
    return {**deployment.env, "AJ_REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"}
