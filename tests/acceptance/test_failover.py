"""The master is killed under load: another server takes its place, and callers see nothing but 503 and 202."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from aj.clock import monotonic_s
from tests.support.inside import starts
from tests.support.processes import Running, clean_env, running_api, running_worker
from tests.support.receiver import Receiver
from tests.support.sentinels import MASTER, SENTINEL_PASSWORD, SERVER_PASSWORD, Watched, watched_store
from tests.support.waiting import wait_until

CLIENTS = 4
LONGEST_S = 3.5  # the contract's 3 s, and a little for this machine
TASKS = "tests.support.tasks"


class Load:
    """Clients that submit with keys, retry what was answered 503, and look at what they were given."""

    def __init__(self, api: str) -> None:
        self._api = api
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.answers: Counter[int] = Counter()
        self.slowest_s = 0.0
        # For each key the first id that was given, in the order of the answers.
        self.given: dict[str, str] = {}
        self.unexpected: list[str] = []

    def ask(self, method: str, path: str, **options: Any) -> requests.Response:
        started_s = monotonic_s()
        answer = requests.request(method, self._api + path, timeout=20, **options)
        with self._lock:
            self.answers[answer.status_code] += 1
            self.slowest_s = max(self.slowest_s, monotonic_s() - started_s)
            if answer.status_code not in (200, 202, 503):
                self.unexpected.append(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer

    def submit(self, key: str) -> str:
        """Repeats the submission until it is accepted, as a client does that obeys the contract."""

        def accepted() -> str | None:
            answer = self.ask("POST", "/jobs", json={"n": 5}, headers={"Idempotency-Key": key})
            return str(answer.json()["job_id"]) if answer.status_code == 202 else None

        job_id = wait_until(accepted, 30, f"an answer to {key}")
        with self._lock:
            self.given.setdefault(key, job_id)
        return job_id

    def _work(self, name: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            job_id = self.submit(f"{name}.{number}")
            self.ask("GET", f"/jobs/{job_id}")

    @contextmanager
    def on(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._work, args=(name,)) for name in range(CLIENTS)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._stop.set()
            for each in threads:
                each.join(40)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched_store(tmp_path_factory.mktemp("watched")) as made:
        yield made


@pytest.fixture(scope="module")
def env(watched: Watched) -> dict[str, str]:
    return {
        "AJ_REDIS_URL": watched.url,
        "AJ_TASKS": TASKS,
        "AJ_CALLBACK_ALLOW": "127.0.0.0/8",
        "AJ_LEASE_S": "3",
        "AJ_WORKERS": "2",
    }


def test_rq_info_finds_the_queue_by_the_documented_settings(
    watched: Watched, env: dict[str, str], folder: Path
) -> None:
    """RQ's command line knows Sentinels by a file of its own, as docs/store.md shows it."""
    addresses = [("127.0.0.1", each.port) for each in watched.sentinels]
    (folder / "rq_settings.py").write_text(
        "SENTINEL = {\n"
        f"    'INSTANCES': {addresses!r},\n"
        f"    'MASTER_NAME': {MASTER!r},\n"
        "    'DB': 0,\n"
        f"    'PASSWORD': {SERVER_PASSWORD!r},\n"
        f"    'SENTINEL_KWARGS': {{'password': {SENTINEL_PASSWORD!r}}},\n"
        "}\n"
    )
    with running_worker(env, folder):
        done = subprocess.run(
            [sys.executable, "-m", "rq.cli", "info", "-c", "rq_settings", "--raw"],
            env=clean_env({"PYTHONPATH": str(folder)}),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    assert len(re.findall("^worker .* idle q:jobs2[.]", done.stdout, re.MULTILINE)) == 2, done.stdout + done.stderr


def test_a_failover_under_load_loses_nothing_that_was_replicated(
    watched: Watched, env: dict[str, str], receiver: Receiver, folder: Path
) -> None:
    """Nobody restarts anything. What was not replicated is unknown afterwards, and its key brings a new job."""
    waits = folder / "go"
    with running_api(env, folder) as (api_process, api), running_worker(env, folder) as worker:
        load = Load(api)
        children = sorted(worker.children())
        with load.on():
            long = load.ask(
                "POST",
                "/jobs",
                json={"task": "wait_for_file", "path": str(waits), "callback_url": receiver.url()},
            ).json()["job_id"]
            wait_until(lambda: starts(waits), what="a running job")
            wait_until(lambda: len(load.given) > 40, what="a load")
            with load._lock:
                before = dict(load.given)
            assert watched.master.client.wait(1, 5000) == 1
            watched.master.kill()
            wait_until(lambda: watched.master_port() == watched.replica.port, 20, "a failover")
            count = len(load.given)
            wait_until(lambda: len(load.given) > count + 40, 20, "submissions to the new master")
            waits.touch()
        ends = {key: end_of(load, key) for key in load.given}
        assert end_of_job(load, long)["result"] == "seen"
        wait_until(lambda: receiver.received, what="the webhook")
        assert load.unexpected == []
        assert load.answers[503] > 0, "nobody noticed; the test did not test"
        assert load.slowest_s < LONGEST_S
        assert all(ends[key] == "succeeded" for key in before)
        assert set(ends.values()) <= {"succeeded", "lost", "unknown"}
        assert sorted(worker.children()) == children
        assert_well(load, worker, api_process)
        assert worker.stop() == 0


def end_of(load: Load, key: str) -> str:
    """How the job of a key ended; one that the new master does not know is submitted again with its key."""
    answer = requests.get(f"{load._api}/jobs/{load.given[key]}", timeout=20)
    if answer.status_code == 404:
        assert end_of_job(load, load.submit(key))["status"] == "succeeded"
        return "unknown"
    found = end_of_job(load, load.given[key])
    return str(found["status"] if found["status"] == "succeeded" else found["error"]["type"])


def end_of_job(load: Load, job_id: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        found: dict[str, Any] = load.ask("GET", f"/jobs/{job_id}").json()
        return found if found.get("status") in ("succeeded", "failed") else None

    return wait_until(ended, 90, f"the end of {job_id}")


def assert_well(load: Load, worker: Running, api: Running) -> None:
    """The deployment is ready, and no log holds a traceback or a password."""
    wait_until(lambda: load.ask("GET", "/readyz").status_code == 200, what="readiness")
    for output in (worker.output, api.output):
        assert "Traceback" not in output
        assert "hunter2" not in output
