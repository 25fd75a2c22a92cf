"""Which requests the loop of a web process answers, by the app that it serves, its configuration and its pace."""

from __future__ import annotations

import pytest
from flask import Blueprint, Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from aj import JobsBlueprint
from aj.local import gunicorn_worker
from aj.local.gunicorn_worker import FAR_PAUSE_S, FAR_S, LAST, DirectWorker, Pace
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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, in its only item."""
    now_s = [100.0]
    monkeypatch.setattr(gunicorn_worker, "monotonic_s", lambda: now_s[0])
    return now_s


def give(pace: Pace, clock: list[float], took_s: float) -> None:
    began_s, clock[0] = clock[0], clock[0] + took_s
    pace.note(began_s)


def test_a_busy_machine_leaves_the_loop_its_requests(clock: list[float]) -> None:
    """Most answers are slow there; one quick one shows that the store is near."""
    pace = Pace()
    for at in range(1000):
        give(pace, clock, 0.001 if at % 50 == 0 else 0.05)
        assert pace.is_quick()


def test_a_store_that_is_far_away_is_left_to_threads(clock: list[float]) -> None:
    """No answer is quick there. It may come nearer, so it is tried again."""
    pace = Pace()
    for _ in range(LAST):
        assert pace.is_quick()
        give(pace, clock, 1.1 * FAR_S)
    assert not pace.is_quick()
    clock[0] += FAR_PAUSE_S
    assert pace.is_quick()


def test_a_store_that_hangs_holds_the_loop_once(clock: list[float]) -> None:
    """After one answer of two seconds the loop is left alone for forty; then it tries again."""
    pace = Pace()
    give(pace, clock, 2.0)
    clock[0] += 39
    assert not pace.is_quick()
    clock[0] += 2
    assert pace.is_quick()
