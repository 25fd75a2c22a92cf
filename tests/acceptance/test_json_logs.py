"""`AJ_LOG=json` with real processes: from start to stop every line is JSON, and says which job it is about."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from aj.access import new_key
from tests.conftest import Deployment
from tests.support.deliveries import answers
from tests.support.jobs import submit
from tests.support.own_store import own_deployment
from tests.support.processes import accepts, free_port, running, running_worker
from tests.support.receiver import receiving
from tests.support.waiting import wait_until

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACE = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
TEXT = 'two\nlines of "gr\u00fcn" 100 %'
PARTS = ("api", "worker", "receiver")
KEY, SHA256 = new_key()


@dataclass(frozen=True, slots=True)
class Run:
    """What was printed by each part, and the ids of the jobs by what the tests call them."""

    printed: dict[str, str]
    jobs: dict[str, str]

    def lines(self, part: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.printed[part].splitlines()]

    def about(self, part: str, job: str, logger: str) -> list[dict[str, Any]]:
        """The lines of a logger about a job."""
        return [each for each in self.lines(part) if (each.get("job_id"), each["logger"]) == (self.jobs[job], logger)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """API, worker and receiver, started, used in many ways, the API told to load its settings again, and stopped."""
    folder = tmp_path_factory.mktemp("json")
    jobs: dict[str, str] = {}
    with own_deployment(folder / "store", AJ_API_KEYS=f"alice:{SHA256}", AJ_CALLBACK_SCHEDULE_S="0,0") as deployment:
        with ExitStack() as stack:
            env = {**deployment.env, "AJ_LOG": "json"}
            port, sink_port = free_port(), free_port()
            sink = {"AJ_LOG": "json", "AJ_HOOKSINK_PORT": str(sink_port)}
            api_command = [sys.executable, "-m", "gunicorn", "wsgi:app", "--access-logfile", "-"]
            receiver = stack.enter_context(receiving())
            parts = [
                stack.enter_context(running(api_command, {**env, "AJ_PORT": str(port)}, folder)),
                stack.enter_context(running_worker(env, folder)),
                # Not in the clone, whose gunicorn.conf.py would be found.
                stack.enter_context(running([sys.executable, "-m", "hooksink"], sink, folder, folder)),
            ]
            wait_until(lambda: accepts(port) and accepts(sink_port), what="an API and a receiver that listen")
            receiver.answer = answers((500, {}))
            use(f"http://127.0.0.1:{port}/jobs", receiver.url(), jobs)
            assert requests.post(f"http://127.0.0.1:{sink_port}/", json={}, timeout=10).status_code == 400
            api = parts[0]
            api.process.send_signal(signal.SIGHUP)
            wait_until(
                lambda: api.output.count("Booting worker") == 4, what="an API that has loaded its settings again"
            )
            wait_until(lambda: len(receiver.received) == 2, what="both attempts of the webhook")
        return Run({name: each.output for name, each in zip(PARTS, parts, strict=True)}, jobs)


def use(url: str, hook: str, jobs: dict[str, str]) -> None:
    """A job for each kind of line."""
    headers = {"Authorization": f"Bearer {KEY}", "traceparent": TRACE, "Idempotency-Key": "k"}

    def post(name: str, key: str, **members: Any) -> requests.Response:
        answer = requests.post(url, json=members, headers={**headers, "Idempotency-Key": key}, timeout=20)
        jobs[name] = answer.json()["job_id"]
        return answer

    post("speaks", "speaks", task="speak", text=TEXT, callback_url=hook)
    assert post("speaks", "speaks", task="speak", text=TEXT, callback_url=hook).headers["Idempotent-Replayed"]
    post("fails", "fails", task="fail", text="wrong\n" + TEXT)
    post("dies", "dies", task="exit_with", code=1)
    post("tries again", "again", task="try_again_at_once", fail=True)
    for name, job_id in jobs.items():
        wait_until(lambda: has_ended(f"{url}/{job_id}"), what=f"the end of the job that {name}")  # noqa: B023


def has_ended(url: str) -> bool:
    answer = requests.get(url, headers={"Authorization": f"Bearer {KEY}"}, timeout=20)
    return answer.json()["status"] in ("succeeded", "failed")


@pytest.mark.parametrize("part", PARTS)
def test_every_line_is_json_from_start_to_stop(run: Run, part: str) -> None:
    """gunicorn's own lines and RQ's too; and each has the fields that every line has."""
    lines = run.lines(part)
    assert len(lines) > 5
    for each in lines:
        assert {"at", "level", "logger", "message"} <= each.keys()
    wanted = {"worker": {"rq.worker", "aj.worker", "aj.deliver", "shop"}, "receiver": {"gunicorn.error", "hooksink"}}
    expected = wanted.get(part, {"gunicorn.error", "gunicorn.access", "aj.submit"})
    assert {each["logger"] for each in lines} >= expected


def test_what_a_task_says_carries_its_job_and_its_trace(run: Run) -> None:
    """Also from a thread that the task started; its own fields stay, but for one of ours."""
    own, from_thread = run.about("worker", "speaks", "shop")
    for each in (own, from_thread):
        assert (each["message"], each["task"], each["attempt"]) == (TEXT, "speak", 1)
        assert (each["traceparent"], each["trace_id"]) == (TRACE, TRACE_ID)
    assert own["price"] == 5


def test_each_accepted_submission_is_one_line_of_the_api(run: Run) -> None:
    """With its owner, and whether it is a replay."""
    lines = run.about("api", "speaks", "aj.submit")
    assert [each["replayed"] for each in lines] == [False, True]
    for each in lines:
        assert (each["level"], each["owner"], each["task"], each["trace_id"]) == ("INFO", "alice", "speak", TRACE_ID)
    assert len(run.about("api", "fails", "aj.submit")) == 1


@pytest.mark.parametrize(
    ("job", "ends"),
    [
        ("speaks", [("succeeded", None)]),
        ("fails", [("failed", "task-failed")]),
        ("dies", [("failed", "lost")]),
        ("tries again", [("failed", "task-failed")] * 3),
    ],
)
def test_each_attempt_has_a_line_at_its_start_and_one_at_its_end(
    run: Run, job: str, ends: list[tuple[str, str | None]]
) -> None:
    """The last one says how it ended and how long it took, also where the work-horse could not say it itself."""
    lines = run.about("worker", job, "aj.worker")
    starts = [each["attempt"] for each in lines if ": started" in each["message"]]
    ended = [each for each in lines if "status" in each]
    assert starts == [each["attempt"] for each in ended] == list(range(1, len(ends) + 1))
    assert [(each["status"], each.get("error_type")) for each in ended] == ends
    assert all(0 <= each["duration_s"] < 20 for each in ended)


def test_a_traceback_is_a_field(run: Run) -> None:
    """Whatever stands in it."""
    [line] = run.about("worker", "fails", "aj.execute")
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: wrong\n" + TEXT)


def test_each_attempt_to_deliver_is_about_its_job(run: Run) -> None:
    """With the trace that the receiver got."""
    lines = run.about("worker", "speaks", "aj.deliver")
    assert [each["trace_id"] for each in lines] == [TRACE_ID] * 2


def test_every_line_of_ours_that_names_a_job_has_its_id(run: Run) -> None:
    """Nobody has to search in texts."""
    for part in ("api", "worker"):
        ours = [each for each in run.lines(part) if each["logger"].startswith("aj.")]
        for job_id in run.jobs.values():
            named = [each for each in ours if job_id in each["message"]]
            assert named
            assert {each.get("job_id") for each in named} == {job_id}


def test_text_stays_the_default_and_a_tasks_lines_name_their_job(deployment: Deployment, folder: Path) -> None:
    """Lines of ours are as they were; those of a task, which know nothing of jobs, are told at their end."""
    with running_worker(deployment.env, folder, "--only", "jobs") as worker:
        job_id = submit(deployment.client(), task="speak", text="sold")
        wait_until(lambda: f" aj.worker: job {job_id}: succeeded\n" in worker.output, what="the end of the job")
        assert worker.output.count(f" shop: sold [job {job_id}]\n") == 2
