"""deploy/Dockerfile, compose.yaml and the Procfile, without Docker.

No image is built here, since tests have no Docker engine. The steps of the Dockerfile are read and done one after the
other in an empty folder (`RUN` with a `pip` that installs nothing), its `CMD` is started there, and compose.yaml is
read as YAML and judged by hand: its services, commands, settings, health checks and what it builds from.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import requests
import yaml  # type: ignore[import-untyped]

from aj.local.embedded import start_server
from aj.settings import Settings
from tests.docs.deployed import DEPLOY, answers, env_of
from tests.support.pip_stand_in import main as pip
from tests.support.processes import free_port, running
from tests.support.waiting import wait_until

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
STEPS = re.findall(r"^([A-Z]+) (.+)$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
PROCFILE = dict(re.findall(r"^(\w+): (.+)$", (DEPLOY / "app/Procfile").read_text("utf-8"), re.MULTILINE))
USUAL = {"AJ_TASKS": "tasks", "AJ_TASK_APP": "shop:create_app()", "AJ_WORKERS": "1"}


def context(folder: Path) -> Path:
    """What compose.yaml builds from, with the folder of wheels that its reader has made."""
    build = COMPOSE["services"]["web"]["build"]
    source = DEPLOY / build["context"]
    assert (source / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    made = Path(shutil.copytree(source, folder / "context"))
    (made / "wheels").mkdir()
    return made


def build(folder: Path) -> Path:
    """Does the steps of the Dockerfile; the folder in which its `CMD` runs."""
    source, image = context(folder), folder / "image"
    work = image
    for step, text in STEPS:
        if step == "WORKDIR":
            work = image / text.lstrip("/")
            work.mkdir(parents=True)
        elif step == "COPY":
            *sources, target = text.split()
            for each in sources:
                copy(source / each, work / target)
        elif step == "RUN":
            program, *arguments = shlex.split(text)
            arguments = [str(work / each) if (work / each).is_file() else each for each in arguments]
            assert (program, pip(arguments)) == ("pip", 0)
        else:
            assert step in ("FROM", "ENV", "USER", "EXPOSE", "CMD")
    return work


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def started(words: list[str], port: int) -> list[str]:
    """The command with the packages of this test, on a free port of this machine."""
    moved = [each.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for each in words]
    programs = {"gunicorn": [sys.executable, "-m", "gunicorn"], "python": [sys.executable]}
    return [*programs[moved[0]], *moved[1:]]


def test_what_the_image_starts_serves_and_runs_jobs(tmp_path: Path) -> None:
    """`CMD` for the web, the command of compose.yaml for the worker, in the folder that the steps have made."""
    work, port = build(tmp_path), free_port()
    commands = [json.loads(dict(STEPS)["CMD"]), COMPOSE["services"]["worker"]["command"]]
    with start_server(tmp_path / "store") as store, ExitStack() as stack:
        env = {**USUAL, "AJ_REDIS_URL": store.url}
        for command in commands:
            stack.enter_context(running(started(command, port), env, tmp_path, work))
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/api/readyz"), 30, "an application that is ready")
        submitted = requests.post(
            f"http://127.0.0.1:{port}/api/jobs", json={"order": 1}, headers={"Prefer": "wait=20"}, timeout=30
        )
        assert submitted.json()["result"] == {"order": 1, "parcels": 1}
        probe = COMPOSE["services"]["web"]["healthcheck"]["test"]
        assert probe[:2] == ["CMD", "python"]
        asked = [sys.executable, *(each.replace(":8000", f":{port}") for each in probe[2:])]
        assert subprocess.run(asked, check=False).returncode == 0


def test_the_image_is_one_that_we_run_on_and_is_not_root() -> None:
    """A Python that the project supports, and a user by number, which needs no entry in the image."""
    image = dict(STEPS)["FROM"]
    found = re.fullmatch(r"python:3\.(\d+)-slim", image)
    assert found is not None
    assert int(found[1]) >= 11
    assert int(dict(STEPS)["USER"]) > 0


def test_compose_names_only_what_is_there() -> None:
    """Services that others wait for have a health check, volumes are declared, and settings are settings."""
    services = COMPOSE["services"]
    assert set(COMPOSE) == {"x-shop", "services", "volumes"}
    for service in services.values():
        for other, when in service.get("depends_on", {}).items():
            assert when == {"condition": "service_healthy"}
            assert "healthcheck" in services[other]
        assert {each.partition(":")[0] for each in service.get("volumes", [])} <= set(COMPOSE["volumes"])
    settings = Settings.from_env(services["worker"]["environment"])
    assert settings.redis_url is not None
    assert "store:6379" in settings.redis_url
    assert services["web"]["environment"] == services["worker"]["environment"]
    assert int(services["worker"]["stop_grace_period"].removesuffix("s")) > settings.job_timeout_s


def test_the_store_of_compose_is_one_that_we_accept() -> None:
    """Its options are those of redis.conf."""
    words = COMPOSE["services"]["store"]["command"]
    assert words[0] == "valkey-server"
    options = dict(zip((each.removeprefix("--") for each in words[1::2]), words[2::2], strict=True))
    lines = dict(re.findall(r"^([a-z-]+) (.+)$", (DEPLOY / "redis.conf").read_text("utf-8"), re.MULTILINE))
    assert options.items() <= lines.items()


def test_the_procfile_starts_the_web_on_the_port_of_the_platform(tmp_path: Path) -> None:
    """Run by a shell, as such platforms do, with `PORT` in the environment; its worker is that of compose.yaml."""
    assert set(PROCFILE) == {"web", "worker"}
    assert PROCFILE["worker"].split() == COMPOSE["services"]["worker"]["command"]
    work, port = build(tmp_path), free_port()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with start_server(tmp_path / "store") as store:
        env = {**USUAL, "AJ_REDIS_URL": store.url, "PORT": str(port), "PATH": path}
        with running(["sh", "-c", PROCFILE["web"].replace("gunicorn", "exec gunicorn")], env, tmp_path, work):
            wait_until(lambda: answers(f"http://127.0.0.1:{port}/api/healthz"), 30, "an application that answers")


def test_the_settings_are_the_same_everywhere() -> None:
    """Who reads one of the files knows the others."""
    unit, compose = env_of(DEPLOY / "shop.env"), COMPOSE["services"]["worker"]["environment"]
    assert {**unit, "AJ_REDIS_URL": ""} == {**compose, "AJ_REDIS_URL": ""}
