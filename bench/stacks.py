"""The stacks that are compared, each started as its authors start it. Nothing is started here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.processes import ROOT, Start
from bench.wire import request

AJ, RQ, CELERY = "aj", "Flask + RQ", "Flask + Celery"
BODY = '{"n": 5}'
SUBMIT = request("POST", "/jobs", BODY)
# More jobs wait in the bench than the default lets in.
AJ_ENV = {"AJ_TASKS": "bench.tasks", "AJ_MAX_QUEUED": "100000000", "AJ_CALLBACK_ALLOW": "127.0.0.1"}


@dataclass(frozen=True, slots=True)
class Worker:
    """A way to run the jobs of a stack; `jobs_per_s` is about what a slow machine runs, so that no more wait."""

    name: str
    start: Start
    jobs_per_s: int


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack. `web` still lacks its port, which `port_variable` or gunicorn's `--bind` gives it.

    `ended` stands in the status of a job that has ended, and in no other.
    """

    name: str
    web: Start
    workers: tuple[Worker, ...]
    ended: bytes

    def web_at(self, port: int) -> Start:
        if self.name == AJ:
            return self.web.plus({"AJ_PORT": str(port)})
        return self.web.plus({}, "--bind", f"127.0.0.1:{port}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the stacks run: the store's address, the files of the run, and the environment that all of them get.

    `celery_python` is that of the peers' own environment; None leaves Celery out.
    """

    url: str
    folder: Path
    env: Mapping[str, str]
    celery_python: str | None

    @property
    def marks(self) -> Path:
        """One byte for each executed job."""
        return self.folder / "marks"

    def start(self, command: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> Start:
        return Start(command, cwd, {**self.env, "PYTHONPATH": str(ROOT), "BENCH_MARKS": str(self.marks), **env})


def aj_stack(place: Place, **changes: str) -> Stack:
    """`aj` with its defaults, two gunicorn processes of 256 threads; `changes` are settings by their full names."""
    env = {"AJ_REDIS_URL": place.url, **AJ_ENV, **changes}
    worker = place.start((sys.executable, "worker.py"), ROOT, env)
    return Stack(
        AJ,
        place.start((sys.executable, "-m", "gunicorn", "wsgi:app"), ROOT, env),
        (
            Worker("aj, 100 jobs per work-horse", worker, 800),
            Worker("aj, 1 job per work-horse", worker.plus({"AJ_JOBS_PER_HORSE": "1"}), 120),
        ),
        b'"succeeded"',
    )


def _gunicorn(place: Place, python: str, app: str, env: Mapping[str, str]) -> Start:
    """Two processes of the class that gunicorn takes where nothing is said, outside the reach of our own config."""
    return place.start((python, "-m", "gunicorn", "--workers", "2", app), place.folder, env)


def rq_stack(place: Place) -> Stack:
    env = {"RQ_REDIS_URL": place.url}
    worker = place.start((sys.executable, "-m", "rq.cli", "worker"), place.folder, env)
    return Stack(
        RQ,
        _gunicorn(place, sys.executable, "bench.peers.rq_app:app", env),
        (
            Worker("RQ Worker, a fork per job", worker, 120),
            Worker("RQ SimpleWorker, no fork", worker.plus({}, "--worker-class", "rq.SimpleWorker"), 600),
        ),
        b'"finished"',
    )


def celery_stack(place: Place, python: str) -> Stack:
    env = {"BENCH_URL": place.url}
    options = ("worker", "--loglevel", "INFO", "--concurrency", "1")
    command = (python, "-m", "celery", "--app", "bench.peers.celery_app:celery", *options)
    return Stack(
        CELERY,
        _gunicorn(place, python, "bench.peers.celery_app:app", env),
        (Worker("Celery, prefork with 1 process", place.start(command, place.folder, env), 800),),
        b'"SUCCESS"',
    )


def stacks_at(place: Place) -> list[Stack]:
    """All that are compared."""
    peers = [celery_stack(place, place.celery_python)] if place.celery_python else []
    return [aj_stack(place), rq_stack(place), *peers]
