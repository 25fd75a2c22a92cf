"""The status document through a job's whole life: what it shows in each state, and how a caller may ask for it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from aj.clock import monotonic_s
from tests.conftest import Deployment
from tests.support.jobs import document, run, submit, work_off
from tests.support.own_store import own_deployment
from tests.support.processes import running_worker
from tests.support.waiting import wait_until

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
Life = dict[str, TestResponse]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """One job as a worker process runs it: the answers to a GET in each state, and again without a change."""
    folder = tmp_path_factory.mktemp("life")
    with own_deployment(folder / "store") as deployment:
        client, go = deployment.client(), folder / "go"
        location = f"/jobs/{submit(client, task='wait_for_file', path=str(go))}"
        answers = {"queued": client.get(location), "queued again": deployment.client().get(location)}
        with running_worker(deployment.env, folder, "--only", "jobs"):
            wait_until(lambda: status_of(client.get(location)) == "running", what="a running job")
            answers |= {"running": client.get(location), "running again": client.get(location)}
            go.touch()
            wait_until(lambda: status_of(client.get(location)) != "running", what="an ended job")
            answers |= {"succeeded": client.get(location), "succeeded again": client.get(location)}
        yield answers


def status_of(answer: TestResponse) -> str:
    status: str = (answer.json or {})["status"]
    return status


@pytest.mark.parametrize(
    ("state", "members"),
    [
        ("queued", {"job_id", "status", "task", "created_at", "position"}),
        ("running", {"job_id", "status", "task", "created_at", "started_at", "attempt"}),
        (
            "succeeded",
            {"job_id", "status", "task", "created_at", "started_at", "ended_at", "expires_at", "attempt", "result"},
        ),
    ],
)
def test_each_state_shows_its_members(life: Life, state: str, members: set[str]) -> None:
    """A member is there when there is something to say, and not before."""
    answer = life[state]
    assert answer.status_code == 200
    assert answer.content_type == "application/json"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert (answer.json or {}).keys() == members
    assert status_of(answer) == state


def test_times_are_rfc_3339_with_milliseconds_and_in_order(life: Life) -> None:
    """UTC, so that they can be compared as text."""
    shown = life["succeeded"].json or {}
    times = [shown[f"{name}_at"] for name in ("created", "started", "ended", "expires")]
    assert all(RFC_3339.fullmatch(each) for each in times)
    assert times == sorted(times)


def test_a_time_never_changes_once_it_is_shown(life: Life) -> None:
    """Nor does the id, the task or the attempt of a job that runs once."""
    queued, running, ended = (dict(life[state].json or {}) for state in ("queued", "running", "succeeded"))
    del queued["position"]
    assert {**running, "status": ""}.items() >= {**queued, "status": ""}.items()
    assert {**ended, "status": ""}.items() >= {**running, "status": ""}.items()


def test_the_etag_changes_exactly_when_the_document_does(life: Life) -> None:
    """Through another process too, since it is made of the document alone."""
    tags = [life[state].headers["ETag"] for state in ("queued", "running", "succeeded")]
    assert len(set(tags)) == 3
    assert tags == [life[f"{state} again"].headers["ETag"] for state in ("queued", "running", "succeeded")]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_an_active_job_says_when_to_ask_again(life: Life, state: str) -> None:
    """In whole seconds, at least one."""
    assert re.fullmatch("[1-9][0-9]*", life[state].headers["Retry-After"])


def test_an_ended_job_does_not_ask_to_be_asked_again(deployment: Deployment, client: FlaskClient, life: Life) -> None:
    """Neither a success nor a failure: a client that obeys would never stop."""
    failed = client.get(f"/jobs/{run(deployment, client, task='fail', text='x')['job_id']}")
    assert status_of(failed) == "failed"
    assert "Retry-After" not in failed.headers
    assert "Retry-After" not in life["succeeded"].headers


@pytest.mark.parametrize("ended", [False, True])
def test_head_equals_get_without_the_body(deployment: Deployment, client: FlaskClient, ended: bool) -> None:
    """The same status and the same headers, the length included."""
    location = f"/jobs/{submit(client, n=5)}"
    if ended:
        work_off(deployment)
    got, head = client.get(location), client.head(location)
    assert (head.status_code, head.data) == (200, b"")
    assert dict(head.headers) == dict(got.headers)
    assert int(head.headers["Content-Length"]) == len(got.data)


@pytest.mark.parametrize(
    ("path", "allowed"), [("/jobs", {"GET", "HEAD", "POST"}), ("/jobs/{id}", {"DELETE", "GET", "HEAD"})]
)
def test_options_and_405_name_the_methods(client: FlaskClient, path: str, allowed: set[str]) -> None:
    """`Allow` says what a resource can do, asked or tried."""
    path = path.format(id=submit(client, n=5))
    asked, tried = client.options(path), client.put(path)
    assert (asked.status_code, tried.status_code) == (200, 405)
    assert tried.content_type == "application/problem+json"
    for answer in (asked, tried):
        assert {method.strip() for method in answer.headers["Allow"].split(",")} == allowed | {"OPTIONS"}


def test_a_slash_too_many_is_not_redirected(client: FlaskClient) -> None:
    """A redirect could turn a POST into a GET; a plain no cannot."""
    answer = client.post("/jobs/", json={"n": 5})
    assert answer.status_code in (404, 405)
    assert answer.content_type == "application/problem+json"


def test_an_id_that_was_never_given_is_404(client: FlaskClient) -> None:
    """Of the right form, but nobody's."""
    answer = client.get(f"/jobs/{str(uuid.uuid4()).replace('-4', '-7', 1)}")
    assert answer.status_code == 404
    assert (answer.json or {})["type"].endswith("job-unknown")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Retry-After" not in answer.headers


@pytest.mark.parametrize(
    "job_id",
    [
        "x",
        "a" * 10_000,
        "%00",
        "*",
        "..",
        "../jobs",
        "..%2f..",
        "%E2%9C%93",
        "%ff",
        " ",
        "018f2b5e-0000-7000-8000-000000000000%0a",
        "018F2B5E-0000-7000-8000-00000000000A",
        "018f2b5e-0000-4000-8000-000000000000",
        "018f2b5e000070008000000000000000",
        "{018f2b5e-0000-7000-8000-000000000000}",
    ],
    ids=lambda text: text[:40],
)
def test_a_malformed_id_is_404_without_a_look(deploy: Callable[..., Deployment], job_id: str) -> None:
    """Never an error, and never a question to the store: the one of this app is not there."""
    client = deploy().client(AJ_REDIS_URL="redis://127.0.0.1:1")
    answer = client.get(f"/jobs/{job_id}")
    assert answer.status_code == 404
    assert answer.content_type == "application/problem+json"
    assert "Retry-After" not in answer.headers


def test_a_result_past_its_life_is_410_and_later_404(deploy: Callable[..., Deployment]) -> None:
    """First the API remembers that there was a job and when it expired, then nothing at all."""
    deployment = deploy(AJ_RESULT_TTL_S="1", AJ_TOMBSTONE_TTL_S="1")
    client = deployment.client()
    job = run(deployment, client, n=5)
    location = f"/jobs/{job['job_id']}"
    wait_until(lambda: client.get(location).status_code != 200, within_s=3, what="the end of the result")
    gone = client.get(location)
    shown = gone.json or {}
    assert gone.status_code == 410
    assert gone.content_type == "application/problem+json"
    assert shown["type"].endswith("job-expired")
    assert shown["expired_at"] == job["expires_at"]
    assert gone.headers["Cache-Control"] == "no-store"
    assert "Retry-After" not in gone.headers
    wait_until(lambda: client.get(location).status_code != 410, within_s=3, what="the end of the tombstone")
    assert client.get(location).status_code == 404


def test_a_failed_job_can_be_read_as_long_as_a_successful_one(deploy: Callable[..., Deployment]) -> None:
    """Its life counts from its end, too."""
    deployment = deploy(AJ_RESULT_TTL_S="1")
    client = deployment.client()
    job = run(deployment, client, task="fail", text="x")
    wait_until(lambda: client.get(f"/jobs/{job['job_id']}").status_code == 410, within_s=3, what="a 410")


def test_no_reader_sees_half_of_an_end(deployment: Deployment, folder: Path) -> None:
    """While jobs run, every look shows a final status with its outcome or neither, and no status goes back."""
    client = deployment.client()
    ids = [submit(client, task="fail", text="x") if n % 2 else submit(client, n=n) for n in range(30)]
    with ThreadPoolExecutor(2) as pool, running_worker(deployment.env, folder, "--only", "jobs"):
        readers = [pool.submit(watch, deployment.client(), ids) for _ in range(2)]
        seen = [reader.result() for reader in readers]
    assert seen[0] == seen[1] == [document(client, job_id) for job_id in ids]
    assert {shown["status"] for shown in seen[0]} == {"succeeded", "failed"}


ORDER = {"queued": 0, "running": 1, "succeeded": 2, "failed": 2}


def watch(client: FlaskClient, ids: list[str]) -> list[dict[str, Any]]:
    """Reads each job again and again until it has ended; gives the first look at each end."""
    ends: list[dict[str, Any]] = []
    deadline_s = monotonic_s() + 30
    for job_id in ids:
        last = "queued"
        while not ends or ends[-1]["job_id"] != job_id:
            assert monotonic_s() < deadline_s
            shown = document(client, job_id)
            is_final = shown["status"] in ("succeeded", "failed")
            assert ("result" in shown) == (shown["status"] == "succeeded")
            assert ("error" in shown) == (shown["status"] == "failed")
            assert ("ended_at" in shown, "expires_at" in shown) == (is_final, is_final)
            assert ORDER[shown["status"]] >= ORDER[last]
            last = shown["status"]
            if is_final:
                ends.append(shown)
    return ends
