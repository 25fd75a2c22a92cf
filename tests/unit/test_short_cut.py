"""When the short cut past Flask is shut: whenever there is something that would see the difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask, Request, request_started
from flask.sessions import SecureCookieSessionInterface

from aj import create_app
from aj.settings import Settings

SETTINGS = Settings.from_env({"AJ_REDIS_URL": "redis://127.0.0.1:1/0"})
A_JOB = "/jobs/01a2b3c4-0000-7000-8000-000000000000"


def goes_through_flask(app: Flask) -> bool:
    """Whether the second of two requests does; the first always does."""
    asked, whole = [], app.wsgi_app.through_flask  # type: ignore[attr-defined]

    def spy(environ: Any, start_response: Any) -> Any:
        asked.append(environ)
        return whole(environ, start_response)

    app.wsgi_app.through_flask = spy  # type: ignore[attr-defined]
    for path in ("/healthz", A_JOB):
        app.test_client().get(path)
    return len(asked) == 2


def test_it_is_open_where_nothing_was_added() -> None:
    """As in the processes that the project starts."""
    assert not goes_through_flask(create_app(SETTINGS))


ADDITIONS: dict[str, Callable[[Flask], object]] = {
    "before_request": lambda app: app.before_request(lambda: None),
    "after_request": lambda app: app.after_request(lambda answer: answer),
    "teardown_request": lambda app: app.teardown_request(lambda _: None),
    "teardown_appcontext": lambda app: app.teardown_appcontext(lambda _: None),
    "url_value_preprocessor": lambda app: app.url_value_preprocessor(lambda *_: None),
    "errorhandler": lambda app: app.register_error_handler(500, lambda _: "mine"),
    "hook of the blueprint": lambda app: app.after_request_funcs["aj"].append(lambda answer: answer),
    "view": lambda app: app.view_functions.update({"aj.status": lambda **_: "mine"}),
    "route": lambda app: app.add_url_rule("/mine", "mine", lambda: "mine"),
    "config": lambda app: app.config.update(TRUSTED_HOSTS=["mine.test"]),
    "request_class": lambda app: setattr(app, "request_class", type("Mine", (Request,), {})),
    "session_interface": lambda app: setattr(app, "session_interface", SecureCookieSessionInterface()),
    "class": lambda app: setattr(app, "__class__", type("Mine", (Flask,), {})),
    "method": lambda app: setattr(app, "dispatch_request", app.dispatch_request),
}


@pytest.mark.parametrize("add", ADDITIONS.values(), ids=ADDITIONS)
def test_what_is_added_shuts_it(add: Callable[[Flask], object]) -> None:
    """Hooks, handlers, routes, settings and classes see every request, as they would in any app of Flask."""
    app = create_app(SETTINGS)
    add(app)
    assert goes_through_flask(app)


def test_who_listens_to_signals_shuts_it() -> None:
    """As Sentry does."""

    def listen(_: Any) -> None: ...

    with request_started.connected_to(listen):
        assert goes_through_flask(create_app(SETTINGS))
    assert not goes_through_flask(create_app(SETTINGS))


@pytest.mark.parametrize("name", ["wsgi_app", "full_dispatch_request", "dispatch_request"])
def test_a_monitor_around_flask_shuts_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that replace methods of Flask see every request too."""
    whole = getattr(Flask, name)

    def watched(*args: Any) -> Any:
        return whole(*args)

    monkeypatch.setattr(Flask, name, watched)
    assert goes_through_flask(create_app(SETTINGS))


def test_a_monitor_in_place_of_flask_shuts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does one that puts a class of its own there, with hooks that are there from the beginning."""

    class Monitored(Flask):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.wsgi_app = lambda *asked: Flask.wsgi_app(self, *asked)  # type: ignore[method-assign]

    monkeypatch.setattr("aj.app.Flask", Monitored)
    assert goes_through_flask(create_app(SETTINGS))


def test_a_hook_that_comes_too_late_is_refused() -> None:
    """By Flask itself, since the first request is answered by it."""
    app = create_app(SETTINGS)
    app.test_client().post("/jobs", json={})
    with pytest.raises(AssertionError, match="setup method"):
        app.before_request(lambda: None)
