"""What `GET /metrics` tells, read by Prometheus' own parser: the same from every process."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import requests
import rq
from flask.testing import FlaskClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from aj import create_app, views_metrics
from aj.pace import packed
from aj.settings import Settings
from aj.store import BOUNDS_S
from tests.architecture.tree import ROOT
from tests.conftest import Deployment
from tests.support.deliveries import delivering, ended, wait_for_state
from tests.support.jobs import document, run, submit, work_off
from tests.support.processes import running_api, running_worker
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

Samples = dict[tuple[str, ...], float]


def read(text: str) -> Samples:
    """Values by name and labels."""
    return {
        (each.name, *(f"{name}={value}" for name, value in sorted(each.labels.items()))): each.value
        for family in parse_text(text)
        for each in family.samples
    }


def figures(client: FlaskClient) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.content_type.startswith("text/plain")
    return read(answer.text)


def test_submissions_are_counted_by_what_became_of_them(deploy: Callable[..., Deployment]) -> None:
    """What brought a job or an earlier answer, and each kind of refusal by the end of its problem type."""
    client = deploy(AJ_MAX_QUEUED="2", AJ_RATE="3/3600").client()
    for key, body in (("k", {"n": 1}), ("k", {"n": 1}), ("k", {"n": 2}), ("l", {"n": 2}), ("m", {"n": 3}), ("n", {})):
        client.post("/jobs", json=body, headers={"Idempotency-Key": key})
    client.post("/jobs", data=b"{", content_type="application/json")
    client.post("/jobs", data=b"{}", content_type="text/plain")
    counted = {name[1]: value for name, value in figures(client).items() if name[0] == "aj_submissions_total"}
    assert counted == {
        "outcome=accepted": 2,
        "outcome=replayed": 1,
        "outcome=idempotency-key-reused": 1,
        "outcome=queue-full": 1,
        "outcome=invalid-submission": 1,
        "outcome=malformed-body": 1,
        "outcome=unsupported-media-type": 1,
    }


def test_every_process_tells_the_same(deployment: Deployment) -> None:
    """Also of what another one refused, a moment later: a scrape reaches any of them."""
    one, other = deployment.client(), deployment.client()
    submit(one, n=1)
    submit(other, n=2)
    assert other.post("/jobs", json={}).status_code == 422
    refused = ("aj_submissions_total", "outcome=invalid-submission")
    wait_until(lambda: figures(one).get(refused) == 1, what="the refusal of another process")
    assert figures(one)["aj_submissions_total", "outcome=accepted"] == 2


def test_what_waits_and_runs_is_told(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """Depth and age of the queue, jobs that run, workers that live."""
    queue = f"queue={deployment.queue}"
    before = figures(client)
    assert [before[name, queue] for name in ("aj_queue_jobs", "aj_queue_oldest_seconds", "aj_workers")] == [0, 0, 0]
    path = folder / "go"
    with running_worker(deployment.env, folder):
        submit(client, task="wait_for_file", path=str(path))
        wait_until(lambda: figures(client)["aj_jobs_running",] == 1, what="a running job")
        submit(client, n=1)
        wait_until(lambda: figures(client)["aj_queue_oldest_seconds", queue] > 0.05, what="some age")
        assert figures(client)["aj_queue_jobs", queue] == 1
        assert figures(client)["aj_workers", queue] == 1
        path.touch()
        wait_until(lambda: figures(client)["aj_jobs_running",] == 0, what="the end")
    wait_until(lambda: figures(client)["aj_workers", queue] == 0, what="no worker")


def test_workers_of_others_are_not_counted(deploy: Callable[..., Deployment]) -> None:
    """Another deployment and plain RQ may serve the same queue; by theirs nobody expects an end of our jobs either."""
    one = deploy()
    two = deploy(AJ_QUEUES=one.queue)
    rq.Worker([one.queue], connection=one.redis).register_birth()  # type: ignore[no-untyped-call]
    worker = two.worker()
    worker.register_birth()
    worker.heartbeat()
    here, there = one.client(), two.client()
    assert [figures(each)["aj_workers", f"queue={one.queue}"] for each in (here, there)] == [0, 1]
    for deployment in (one, two):
        deployment.redis.set(f"{deployment.settings.prefix}:pace:task:square", packed(30.0) * 64, ex=60)
    assert ["eta_s" in document(each, submit(each, n=5)) for each in (here, there)] == [False, True]


def test_ends_are_counted_by_task_and_kind(deployment: Deployment, client: FlaskClient) -> None:
    """Attempts that are followed by another are no end, and are counted apart."""
    for members in ({"n": 5}, {"n": 6}, {"task": "fail", "text": "x"}, {"task": "try_again_at_once", "fail": True}):
        submit(client, **members)
    client.post(f"/jobs/{submit(client, task='try_again_later')}/cancel")
    work_off(deployment)
    told = figures(client)
    ends = {name[1:]: value for name, value in told.items() if name[0] == "aj_jobs_ended_total" and value}
    assert ends == {
        ("outcome=succeeded", "task=square"): 2,
        ("outcome=task-failed", "task=fail"): 1,
        ("outcome=task-failed", "task=try_again_at_once"): 1,
        ("outcome=cancelled", "task=try_again_later"): 1,
    }
    assert told["aj_job_retries_total", "task=try_again_at_once"] == 2
    assert told["aj_job_wait_seconds_count", "task=try_again_at_once"] == 3
    assert told["aj_job_run_seconds_count", "task=square"] == 2
    assert told["aj_job_run_seconds_count", "task=try_again_later"] == 0, "it never ran"


def test_times_are_told_as_histograms(deployment: Deployment, client: FlaskClient, folder: Path) -> None:
    """Each bucket holds all that took no longer than its bound, and the sum is that of the documents."""
    document = run(deployment, client, n=5)
    path = folder / "go"
    path.touch()
    run(deployment, client, task="wait_for_file", path=str(path))
    told = figures(client)
    for name, first, last in (("wait", "created_at", "started_at"), ("run", "started_at", "ended_at")):
        took_s = round(_seconds(document[last]) - _seconds(document[first]), 3)
        assert told[f"aj_job_{name}_seconds_sum", "task=square"] == took_s
        for bound in BOUNDS_S:
            bucket = told[f"aj_job_{name}_seconds_bucket", f"le={bound}", "task=square"]
            assert bucket == (took_s <= bound), bound
        assert told[f"aj_job_{name}_seconds_bucket", "le=+Inf", "task=square"] == 1


def test_deliveries_are_told(deployment: Deployment, client: FlaskClient, receiver: Receiver) -> None:
    """How many are owed and for how long, how attempts were answered, how deliveries ended."""
    first = ended(deployment, client, receiver.url())
    wait_until(lambda: figures(client)["aj_deliveries_oldest_pending_seconds",] > 0.05, what="some age")
    assert figures(client)["aj_deliveries_pending",] == 1
    with delivering(deployment):
        wait_for_state(client, first, "delivered")
        receiver.answer = lambda _: (410, {})
        wait_for_state(client, ended(deployment, client, receiver.url()), "gone")
    told = figures(client)
    assert (told["aj_deliveries_pending",], told["aj_deliveries_oldest_pending_seconds",]) == (0, 0)
    assert told["aj_deliveries_ended_total", "state=delivered"] == 1
    assert told["aj_deliveries_ended_total", "state=gone"] == 1
    assert told["aj_delivery_attempts_total", "answer=2xx"] == 1
    assert told["aj_delivery_attempts_total", "answer=4xx"] == 1
    client.post(f"/jobs/{first}/deliveries")
    assert figures(client)["aj_deliveries_pending",] == 1
    with delivering(deployment):
        wait_until(lambda: figures(client)["aj_deliveries_pending",] == 0, what="the delivery")


def test_every_series_of_a_task_is_there_before_its_first_job(client: FlaskClient) -> None:
    """Else the first failure would be no increase, and no alert."""
    told = figures(client)
    assert told["aj_jobs_ended_total", "outcome=lost", "task=square"] == 0
    assert told["aj_job_run_seconds_count", "task=square"] == 0
    assert told["aj_submissions_total", "outcome=accepted"] == 0
    assert told["aj_deliveries_ended_total", "state=exhausted"] == 0


def test_no_label_holds_what_a_caller_chose(deploy: Callable[..., Deployment]) -> None:
    """A million different requests make no series more."""
    client = deploy().client()
    for number in range(20):
        client.post("/jobs", json={"task": f"t{number}", "n": number}, headers={"Idempotency-Key": f"k{number}"})
        client.post("/jobs", json={"n": number, "callback_url": f"http://127.0.0.{number}:1{number}/"})
    client.get("/metrics")
    assert not [name for name in figures(client) if re.search(r"=t\d|=k\d|127\.0|=/", " ".join(name))]


def test_a_store_that_is_away_is_told(deployment: Deployment) -> None:
    """The process answers, so the scrape succeeds; it knows one thing."""
    client = create_app(Settings.from_env({**deployment.env, "AJ_REDIS_URL": "redis://127.0.0.1:1/0"})).test_client()
    assert figures(client) == {("aj_store_up",): 0}
    assert client.post("/jobs", json={"n": 1}).status_code == 503
    assert figures(deployment.client())["aj_store_up",] == 1


def test_openmetrics_is_spoken_to_who_prefers_it(client: FlaskClient) -> None:
    """As Prometheus itself does."""
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.content_type.startswith("application/openmetrics-text")
    assert "aj_store_up" in {family.name for family in parse_openmetrics(answer.text)}  # type: ignore[no-untyped-call]


def test_no_key_is_needed(deploy: Callable[..., Deployment]) -> None:
    """It tells of no job and no caller."""
    assert deploy(AJ_API_KEYS=f"alice:{'0' * 64}").client().get("/metrics").status_code == 200


def test_without_the_extra_the_answer_says_how_to_get_it(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """404 as a problem."""
    monkeypatch.setattr(views_metrics, "Collector", object)
    answer = client.get("/metrics")
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")
    assert "flask-aj[metrics]" in answer.text


def test_gunicorn_processes_tell_the_same(deployment: Deployment, folder: Path) -> None:
    """Every submission over two processes is in what any of them tells."""
    with running_api({**deployment.env, "AJ_WEB_WORKERS": "2"}, folder) as (_, url):

        def post(n: int) -> int:
            body: Any = {"n": n if n % 2 else "x"}
            return requests.post(f"{url}/jobs", json=body, headers={"Connection": "close"}, timeout=30).status_code

        with ThreadPoolExecutor(8) as threads:
            assert sorted(threads.map(post, range(40))) == [202] * 20 + [422] * 20

        def scrape() -> tuple[float, float]:
            told = read(requests.get(f"{url}/metrics", headers={"Connection": "close"}, timeout=30).text)
            name = "aj_submissions_total"
            return told[name, "outcome=accepted"], told.get((name, "outcome=invalid-submission"), 0.0)

        wait_until(lambda: scrape() == (20, 20), what="all refusals")
        assert {scrape() for _ in range(10)} == {(20, 20)}


def test_the_scripts_have_the_same_bounds() -> None:
    """Lua counts in milliseconds what Python tells in seconds."""
    script = (ROOT / "aj/store/lua/count.lua").read_text()
    match = re.search(r"BOUNDS_MS = \{([^}]*)\}", script)
    assert match
    assert [int(each) for each in match[1].split(",")] == [round(each * 1000) for each in BOUNDS_S]


def _seconds(text: str) -> float:
    return float(datetime.fromisoformat(text).timestamp())
