"""The contract as a tutorial: one test per promise, in the order in which a caller meets them.

Read from the top. A real API, a real worker and a real receiver stand behind these few lines, started by the
`deployed` fixture; the caller is plain `requests`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from aj.local.embedded import ServerProcess
from tests.support.processes import accepts, clean_env, free_port, running, running_api, running_worker
from tests.support.waiting import wait_until

SECRET = "whsec_" + "dHV0b3JpYWwgc2VjcmV0IG9mIDI0IGJ5dGVz"


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment as its users meet it: addresses, the receiver's log, and the environment it runs in."""

    api: str
    hooksink: str
    log: Path
    env: dict[str, str]
    folder: Path

    def submit(self, key: str | None = None, **members: Any) -> requests.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return requests.post(f"{self.api}/jobs", json=members, headers=headers, timeout=10)

    def look(self, location: str) -> requests.Response:
        return requests.get(self.api + location, timeout=10)

    def wait_for_end(self, location: str) -> requests.Response:
        def ended() -> requests.Response | None:
            answer = self.look(location)
            return answer if answer.json()["status"] in ("succeeded", "failed") else None

        return wait_until(ended, what=f"the end of {location}")


@pytest.fixture(scope="module")
def deployed(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """API and receiver; each test that needs a worker starts one, so that a job can be seen waiting."""
    folder = tmp_path_factory.mktemp("deployed")
    port, log = free_port(), folder / "hook.log"
    env = {
        "AJ_REDIS_URL": store.url,
        "AJ_PREFIX": "tutorial",
        "AJ_QUEUES": "q:jobs2",
        "AJ_TASKS": "aj.tasks,tests.support.tasks_by_name",
        "AJ_WEBHOOK_SECRETS": SECRET,
        "AJ_CALLBACK_ALLOW": f"127.0.0.1:{port}",
        "AJ_RESULT_TTL_S": "3",
        "HOOKSINK_LOG": str(log),
    }
    command = [sys.executable, "-m", "gunicorn", "-b", f"127.0.0.1:{port}", "hooksink:app"]
    with running_api(env, folder) as (_, api), running(command, env, folder):
        wait_until(lambda: accepts(port), what="a receiver that listens")
        yield Deployed(api, f"http://127.0.0.1:{port}/hook", log, env, folder)


def test_a_submission_is_answered_202_with_a_location_and_a_body(deployed: Deployed) -> None:
    """202 means received, not done; Location says where to look."""
    answer = deployed.submit(n=5)
    job_id = answer.json()["job_id"]
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/jobs/{job_id}"
    assert answer.text == f'{{"job_id": "{job_id}", "status": "queued"}}'


def test_a_queued_job_can_be_looked_at_and_has_no_result(deployed: Deployed) -> None:
    """The very next GET finds the job; a result before the end would be a lie."""
    location = deployed.submit(n=5).headers["Location"]
    answer = deployed.look(location)
    assert answer.status_code == 200
    assert answer.json()["status"] == "queued"
    assert "result" not in answer.json()


def test_an_id_that_was_never_given_is_404(deployed: Deployed) -> None:
    """Unknown is not the same as waiting."""
    answer = deployed.look("/jobs/01a22875-8ab0-7b86-a00f-efef3fad16ff")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_one_idempotency_key_is_one_job_and_one_queue_entry(deployed: Deployed) -> None:
    """A caller that never saw its 202 sends the same again, and gets the same job."""
    before = _entries(deployed)
    first = deployed.submit(key="order-17", n=6)
    again = deployed.submit(key="order-17", n=6)
    assert again.status_code == 202
    assert again.content == first.content
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert _entries(deployed) == before + 1


def test_a_job_goes_through_the_four_words_and_ends_with_its_result(deployed: Deployed) -> None:
    """queued, running, succeeded: only forward, and the result comes with the last word."""
    location = deployed.submit(task="countdown", seconds=1).headers["Location"]
    seen = [deployed.look(location).json()["status"]]
    with running_worker(deployed.env, deployed.folder, "--only", "jobs"):
        while seen[-1] in ("queued", "running"):
            document = deployed.look(location).json()
            seen += [document["status"]] if document["status"] != seen[-1] else []
            assert ("result" in document) == (document["status"] == "succeeded")
    assert seen == ["queued", "running", "succeeded"]
    assert document["result"] == "lift-off"


def test_retry_after_is_there_only_while_there_is_something_to_wait_for(deployed: Deployed) -> None:
    """An integer while queued or running; a client would poll for ever if the final answer had it too."""
    location = deployed.submit(n=7).headers["Location"]
    assert re.fullmatch("[1-9][0-9]*", deployed.look(location).headers["Retry-After"])
    with running_worker(deployed.env, deployed.folder, "--only", "jobs"):
        assert "Retry-After" not in deployed.wait_for_end(location).headers


def test_a_failed_job_says_so_and_leaves_no_ghost(deployed: Deployed) -> None:
    """The id names the job, never a result that was to come: after a failure it still answers, with the error."""
    location = deployed.submit(task="always_fails").headers["Location"]
    with running_worker(deployed.env, deployed.folder, "--only", "jobs"):
        document = deployed.wait_for_end(location).json()
    assert document["status"] == "failed"
    assert document["error"]["type"] == "task-failed"
    assert "result" not in document


def test_the_end_is_told_to_the_callback_url_and_stands_in_the_log(deployed: Deployed) -> None:
    """A caller that gives a callback_url need not poll: the receiver has the job's id, its status and a signature."""
    answer = deployed.submit(n=8, callback_url=deployed.hooksink)
    with running_worker(deployed.env, deployed.folder):
        line = wait_until(lambda: _receipt(deployed, answer.json()["job_id"]), what="a line in hook.log")
    assert "status=succeeded" in line
    assert "signature=valid duplicate=false" in line


def test_an_expired_job_is_410_and_not_404(deployed: Deployed) -> None:
    """The client can tell "you came too late" from "there never was such a job"."""
    location = deployed.submit(n=9).headers["Location"]
    with running_worker(deployed.env, deployed.folder, "--only", "jobs"):
        deployed.wait_for_end(location)
    wait_until(lambda: deployed.look(location).status_code != 200, what="the job's expiry")
    gone = deployed.look(location)
    assert gone.status_code == 410
    assert gone.json()["type"].endswith("job-expired")


def _entries(deployed: Deployed) -> int:
    """What `rq info`, RQ's own command, counts in q:jobs2."""
    command = [sys.executable, "-m", "rq.cli", "info", "-u", deployed.env["AJ_REDIS_URL"], "--raw", "--only-queues"]
    shown = subprocess.run(command, env=clean_env({}), capture_output=True, text=True, check=True).stdout
    return sum(int(count) for count in re.findall(r"^queue q:jobs2 ([0-9]+)", shown, re.MULTILINE))


def _receipt(deployed: Deployed, job_id: str) -> str | None:
    lines = deployed.log.read_text("utf-8").splitlines() if deployed.log.exists() else []
    return next((line for line in lines if f"job_id={job_id} " in line), None)
