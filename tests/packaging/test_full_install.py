"""`pip install 'flask-aj[server,…]'` in an app of a user's own: served, run and checked away from the clone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from aj.local.embedded import ServerProcess
from tests.support.environments import Environment, environment_with, foreign_env, the_one
from tests.support.processes import ROOT, accepts, free_port, running
from tests.support.waiting import wait_until

TASKS = '''"""What the app does slowly."""

import aj
from aj import TaskError, report_progress, task


@task(timeout_s=60, retries=2)
def where(deep: bool, names: list[str] | None = None) -> dict[str, str]:
    if not deep:
        raise TaskError("only deep ones")
    report_progress(0.5, "half")
    return {"aj": aj.__file__, "names": ",".join(names or [])}


place: dict[str, str] = where(True, names=["a"])
'''
APP = '''"""A Flask app of a user's own."""

from flask import Flask

from aj import JobsBlueprint


def create_app(url: str) -> Flask:
    made = Flask(__name__)
    made.config.update(AJ_REDIS_URL=url, AJ_PREFIX="wheel", AJ_QUEUES="q:wheel", AJ_TASKS="tasks", AJ_WEB_THREADS=8)
    made.register_blueprint(JobsBlueprint(), url_prefix="/api")
    return made
'''
ASKS = '''"""Somebody who asks that app."""

from typing import Any

from aj.client import Client, Job, JobFailed


def ask(url: str) -> Any:
    with Client(url) as client:
        job: Job = client.submit(deep=True, names=["c"])
        try:
            return job.wait(timeout_s=30.0).result()
        except JobFailed:
            return None
'''
HAS_CLIENT = (ROOT / "aj/client").exists()
# Each of these is wrong; under warn_unused_ignores one that passes is an error too.
WRONG = """from aj import TaskError, task
from tasks import where

where("yes")  # type: ignore[arg-type]
task(timeout_s="a minute")  # type: ignore[call-overload]
number: int = TaskError("no")  # type: ignore[assignment]
"""


@pytest.fixture(scope="module")
def full(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    wheel = the_one(built, "*.whl")
    return environment_with(tmp_path_factory.mktemp("full") / "venv", f"{wheel}[server,docs,embedded,metrics]")


@pytest.fixture
def project(folder: Path) -> Path:
    """The folder of a user's app; nothing of the clone is on its path."""
    made = folder / "project"
    made.mkdir()
    (made / "tasks.py").write_text(TASKS, "utf-8")
    (made / "web.py").write_text(APP, "utf-8")
    (made / "wrong.py").write_text(WRONG, "utf-8")
    if HAS_CLIENT:
        (made / "asks.py").write_text(ASKS, "utf-8")
    return made


@pytest.fixture
def served(full: Environment, project: Path, store: ServerProcess, folder: Path) -> Iterator[str]:
    """The app under gunicorn and a worker beside it, as the README says."""
    port = free_port()
    settings = {"AJ_REDIS_URL": store.url, "AJ_PREFIX": "wheel", "AJ_QUEUES": "q:wheel", "AJ_TASKS": "tasks"}
    env = foreign_env(settings)
    gunicorn = [full.program("gunicorn"), "--threads", "8", "-b", f"127.0.0.1:{port}", f"web:create_app('{store.url}')"]
    with ExitStack() as stack:
        web = stack.enter_context(running(gunicorn, env, folder, project))
        stack.enter_context(running([full.python, "-m", "aj.worker"], env, folder, project))
        wait_until(lambda: accepts(port) or web.process.poll() is not None, what="an app that listens")
        assert web.process.poll() is None, web.output
        yield f"http://127.0.0.1:{port}/api"


def test_a_job_of_a_users_app_runs_from_the_wheel(served: str, full: Environment, project: Path) -> None:
    """Served by gunicorn and run by a worker, both of the environment; docs and figures are there with their extras."""
    location = requests.post(f"{served}/jobs", json={"deep": True, "names": ["a", "b"]}, timeout=10)
    assert location.status_code == 202
    url = f"{served.removesuffix('/api')}{location.headers['Location']}"

    def ended() -> dict[str, object] | None:
        document = requests.get(url, timeout=10).json()
        return document if "ended_at" in document else None

    document = wait_until(ended, what="the end of the job")
    result = document["result"]
    assert isinstance(result, dict)
    assert Path(result["aj"]).is_relative_to(full.folder)
    assert result["names"] == "a,b"
    if HAS_CLIENT:
        code = f"import asks; print(asks.ask({served!r})['names'])"
        assert full.run("python", "-c", code, cwd=project).stdout == "c\n"
    for page in ("docs", "docs/swagger-ui.css", "metrics", "openapi.json"):
        assert requests.get(f"{served}/{page}", timeout=10).status_code == 200, page


def test_the_demonstration_plays_from_the_wheel(full: Environment, project: Path) -> None:
    """API, worker, receiver and a store of their own, in a folder that knows no clone."""
    env = {"AJ_PORT": str(free_port()), "AJ_HOOKSINK_PORT": str(free_port())}
    done = full.run("python", "-m", "aj.local", "demo", cwd=project, env=env, within_s=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "status=succeeded" in done.stdout
    assert done.stderr == ""


def test_a_users_project_passes_a_strict_type_check(full: Environment, project: Path) -> None:
    """Against the types that the wheel brings; what is wrong is refused."""
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", full.python, "."]
    done = subprocess.run(
        command, cwd=project, env=foreign_env({}), capture_output=True, text=True, timeout=180, check=False
    )
    assert done.stdout == f"Success: no issues found in {len(list(project.glob('*.py')))} source files\n"
