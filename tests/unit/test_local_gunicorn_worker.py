"""Which requests the loop of a web process answers, by the app that it serves, its configuration and its pace."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Blueprint, Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

from aj import JobsBlueprint
from aj.local import gunicorn_worker
from aj.local.gunicorn_worker import DirectWorker
from aj.settings import Settings

SETTINGS = Settings.from_env({"AJ_REDIS_URL": "redis://127.0.0.1:1/0", "AJ_TASKS": "tests.support.tasks"})


class Served(BaseApplication):  # type: ignore[misc]
    """An app as gunicorn holds it."""

    def __init__(self, app: object) -> None:
        self.callable = app


def worker_of(app: object, **options: object) -> DirectWorker:
    config = Config()
    for name, value in options.items():
        config.set(name, value)
    worker = DirectWorker(1, 1, [], Served(app), 30, config, Logger(config))
    worker.load_wsgi()
    return worker


def is_quick(worker: DirectWorker, arrived: bytes) -> bool:
    return worker._is_quick is not None and worker._is_quick(arrived)


def host(*prefixes: str | None) -> Flask:
    app = Flask("host")
    for at, prefix in enumerate(prefixes):
        app.register_blueprint(JobsBlueprint(SETTINGS), url_prefix=prefix, name=f"aj{at}")
    return app


def post(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("app", "path"),
    [
        (host(None), "/jobs"),
        (host("/"), "/jobs"),
        (host("/a", "/b"), "/a/jobs"),
        (host("/a", "/b"), "/b/jobs"),
        (host("/grün"), "/gr%C3%BCn/jobs"),
    ],
)
def test_submissions_are_quick_wherever_the_api_is_mounted(app: Flask, path: str) -> None:
    """And only there."""
    worker = worker_of(app)
    assert is_quick(worker, post(path))
    assert not is_quick(worker, post("/other" + path))


def test_an_api_within_another_blueprint_is_found() -> None:
    """Its endpoints bear the names of both."""
    outer, app = Blueprint("outer", __name__), Flask("host")
    outer.register_blueprint(JobsBlueprint(SETTINGS), url_prefix="/in")
    app.register_blueprint(outer, url_prefix="/out")
    assert is_quick(worker_of(app), post("/out/in/jobs"))


@pytest.mark.parametrize("app", [Flask("plain"), lambda *_: [], object()])
def test_an_app_without_an_api_is_served_by_threads(app: object) -> None:
    """So is whatever is no Flask app, as the middleware around one."""
    assert not is_quick(worker_of(app), post("/jobs"))


@pytest.mark.parametrize(
    "options",
    [
        {"certfile": "pyproject.toml", "keyfile": "pyproject.toml"},
        {"protocol": "uwsgi"},
        {"http2_cleartext": "prior-knowledge"},
        {"http2_cleartext": "both"},
    ],
)
def test_what_is_not_plain_http_is_served_by_threads(options: dict[str, object]) -> None:
    """The bytes on the socket are not a request then, whatever they look like."""
    assert not is_quick(worker_of(host(None), **options), post("/jobs"))


class Answered:
    """A worker whose answers take as long as is said, and whose threads note what they are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.worker = worker_of(host(None))
        self.by_threads = 0
        monkeypatch.setattr(gunicorn_worker, "monotonic_s", lambda: self.now_s)
        monkeypatch.setattr(ThreadWorker, "enqueue_req", self._give_to_threads)
        monkeypatch.setattr(ThreadWorker, "finish_request", lambda *_: None)

    def _give_to_threads(self, *_: object) -> None:
        self.by_threads += 1

    def ask(self, takes_s: float) -> None:
        def handle(_conn: object) -> bool:
            self.now_s += takes_s
            return True

        self.worker.handle = handle
        self.worker.enqueue_req(Conn())


class Conn:
    """A connection on which a submission has arrived."""

    parser = None

    @property
    def sock(self) -> Any:
        return self

    def recv(self, *_: object) -> bytes:
        return post("/jobs")

    def send_what_goes(self) -> bytes:
        return b""


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Answered:
    return Answered(monkeypatch)


def test_quick_answers_stay_in_the_loop(answered: Answered) -> None:
    """One that took thirty times as long now and then, since the machine is busy, changes nothing."""
    for at in range(500):
        answered.ask(0.03 if at % 50 == 0 else 0.001)
    assert answered.by_threads == 0


@pytest.mark.parametrize("takes_s", [0.009, 0.015, 0.05, 1.0])
def test_slow_answers_have_a_fraction_of_the_loop(answered: Answered, takes_s: float) -> None:
    """Threads wait side by side; the loop looks now and then whether answers are quick again."""
    begun_s, in_loop_s = answered.now_s, 0.0
    for _ in range(3000):
        before = answered.by_threads
        answered.ask(takes_s)
        if answered.by_threads == before:
            in_loop_s += takes_s
        else:
            answered.now_s += takes_s / 10
    assert 0 < in_loop_s < 0.5 * (answered.now_s - begun_s)


def test_a_hang_is_enough(answered: Answered) -> None:
    """After a single answer of two seconds the loop is free for forty; then it tries again."""
    answered.ask(2.0)
    answered.now_s += 39
    answered.ask(0.001)
    assert answered.by_threads == 1
    answered.now_s += 2
    answered.ask(0.001)
    assert answered.by_threads == 1
