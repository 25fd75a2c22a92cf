"""`rq suspend` holds the workers of a whole store: they take nothing, and whoever looks sees why and what ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rq.suspension import resume, suspend

from aj.store.health import SUSPENDED
from aj.worker.rq_worker import Worker
from tests.conftest import Deployment
from tests.support.jobs import document, submit
from tests.support.own_store import own_deployment
from tests.support.pages import shown
from tests.support.processes import ROOT


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment on a store of its own, so that no other test is held."""
    with own_deployment(tmp_path / "store") as deployment:
        yield deployment


@pytest.fixture
def worker(alone: Deployment, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """One that RQ knows, and that does not pause while it is suspended."""
    worker = alone.worker()
    worker.register_birth()
    worker.heartbeat()
    monkeypatch.setattr(worker._stopping, "wait", lambda timeout: False)
    return worker


def turn(worker: Worker) -> bool:
    """Whether a job was run in a turn that begins with a look at what is asked of the worker."""
    worker._next_look_s = 0.0
    return worker.work_once(goes_on=True)


def test_a_worker_takes_nothing_and_says_when_that_begins_and_ends(
    alone: Deployment, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    """Once each in its log, and in RQ's books for as long as it lasts."""
    caplog.set_level("INFO", "aj.worker")
    client = alone.client()
    job_id = submit(client, n=5)
    suspend(alone.redis)
    assert [turn(worker), turn(worker)] == [False, False]
    assert document(client, job_id)["status"] == "queued"
    assert alone.redis.hget(worker.key, "state") == b"suspended"
    resume(alone.redis)
    assert turn(worker)
    assert document(client, job_id)["status"] == "succeeded"
    assert alone.redis.hget(worker.key, "state") == b"idle"
    assert [told for told in caplog.messages if "suspended" in told] == [
        f"suspended: no job of {alone.queue} is taken until `rq resume`",
        f"no longer suspended: jobs of {alone.queue} are taken again",
    ]


def test_the_deployment_is_not_ready_and_says_what_lets_it_go_on(alone: Deployment, worker: Worker) -> None:
    """Its workers are alive, and yet nobody runs anything; the page that explains such words has these."""
    client = alone.client()
    assert client.get("/readyz").status_code == 200
    suspend(alone.redis)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json["checks"]) == (503, {"suspended": SUSPENDED})  # type: ignore[index]
    assert "`rq resume`" in SUSPENDED
    assert f"`suspended: {SUSPENDED.partition(' since ')[0]} since …`" in (ROOT / "docs/store.md").read_text("utf-8")
    resume(alone.redis)
    assert client.get("/readyz").status_code == 200


def test_a_metric_tells_it(alone: Deployment) -> None:
    """0 and 1, so that an alert can ask for it."""
    client = alone.client()

    def told() -> list[str]:
        return re.findall(r"^aj_suspended (.+)$", client.get("/metrics").text, re.MULTILINE)

    assert told() == ["0.0"]
    suspend(alone.redis)
    assert told() == ["1.0"]
    resume(alone.redis)
    assert told() == ["0.0"]


def test_the_dashboard_tells_it(alone: Deployment, worker: Worker) -> None:
    """Above everything, and of each worker; with a worker that is gone both are said."""
    client = alone.client()
    suspend(alone.redis)
    turn(worker)
    text = shown(client)
    assert "Workers are suspended. Jobs are accepted and wait" in text
    assert "rq resume" in text
    assert "waits for a job" not in text
    assert "No worker is alive" not in text
    assert "Workers are alive" not in text
    worker.register_death()  # type: ignore[no-untyped-call]
    text = shown(client)
    assert "Workers are suspended." in text
    assert "No worker is alive" in text
    resume(alone.redis)
    assert "suspended" not in shown(client)
