"""Tasks inside the application: a real worker process, whose app mounts the API and is careless with its process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Deployment
from tests.support.inside import wait_for_end
from tests.support.jobs import submit
from tests.support.processes import Running, clean_env, free_port, running_worker

APP = "tests.support.host_web:make_app()"


@pytest.fixture
def notes(folder: Path) -> Path:
    """Where the app notes how each of its contexts ended."""
    return folder / "notes"


@pytest.fixture
def hosted(deploy: Callable[..., Deployment], notes: Path) -> Deployment:
    return deploy(AJ_TASK_APP=APP, AJ_TASKS="tests.support.tasks_in_app")


@pytest.fixture
def worker(hosted: Deployment, notes: Path, folder: Path) -> Iterator[Running]:
    with running_worker({**hosted.env, "HOST_NOTES": str(notes)}, folder) as running:
        yield running


def test_a_task_runs_inside_the_app(hosted: Deployment, worker: Running, notes: Path) -> None:
    """It reads the app's config, every job has a context of its own, and what the app does at its end is done."""
    client = hosted.client()
    jobs = [submit(client, name="NOTES") for _ in range(2)]
    assert [wait_for_end(client, job_id)["result"] for job_id in jobs] == [str(notes)] * 2
    assert notes.read_text() == "NoneType\n" * 2


def test_the_app_sees_how_a_task_failed(hosted: Deployment, worker: Running, notes: Path) -> None:
    """By an exception and by its time. The caller learns no more of it than without an app, and the log all of it."""
    client = hosted.client()
    jobs = [submit(client, task=name) for name in ("break_off", "run_on")]
    errors = [wait_for_end(client, job_id)["error"] for job_id in jobs]
    assert [error["type"] for error in errors] == ["task-failed", "timed-out"]
    assert errors[0]["detail"] == "ValueError"
    assert notes.read_text() == "ValueError\nTimedOut\n"
    assert "ValueError: broken in host, which tests.support.host_web made" in worker.output
    assert worker.stop() == 0, "the app's own handlers of signals do not count"


def start(env: dict[str, str], command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Starts a process that is expected to refuse, and waits for its end."""
    return subprocess.run(
        [sys.executable, *command],
        env=clean_env(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("command", [["-m", "aj.worker"], ["-m", "aj.worker.child", "sweep"], ["-m", "aj.local", "up"]])
def test_a_wrong_app_ends_each_process_with_one_line(deployment: Deployment, command: list[str], folder: Path) -> None:
    """Exit code 2, whoever finds it out first."""
    ports = {"AJ_PORT": str(free_port()), "AJ_HOOKSINK_PORT": str(free_port())}
    done = start({**deployment.env, **ports, "AJ_TASK_APP": "tests.support.host_web:make_ap()"}, command, folder)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("aj: AJ_TASK_APP is 'tests.support.host_web:make_ap()', which cannot be loaded")


def test_a_module_of_tasks_that_breaks_ends_the_worker_with_its_traceback(deployment: Deployment, folder: Path) -> None:
    """Its author reads it, and no child is started that would break as well."""
    (folder / "broken_tasks.py").write_text("import threading\nthreading.Timer(60, print).start()\n1 / 0\n")
    done = start({**deployment.env, "AJ_TASKS": "broken_tasks"}, ["-m", "aj.worker"], folder)
    assert (done.returncode, done.stderr.count("Traceback")) == (1, 1)
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
