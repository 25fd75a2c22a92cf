"""The blueprint as a guest in somebody's app: any prefix, any name, more than one, and hands off the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Blueprint, Flask

from aj import JobsBlueprint
from aj.errors import SettingsError
from tests.conftest import Deployment

HTML = "text/html; charset=utf-8"
PROBLEM = "application/problem+json"


def host_app(config: dict[str, Any]) -> Flask:
    """An app with a life of its own: a page, a form, and error pages in its own style."""
    app = Flask("host")
    app.config.update(config)
    app.add_url_rule("/", view_func=lambda: "home", endpoint="home")
    app.add_url_rule("/apiary", view_func=lambda: "bees", endpoint="bees", methods=["POST"])
    app.register_error_handler(404, lambda error: ("<h1>Lost?</h1>", 404))
    app.register_error_handler(405, lambda error: ("<h1>Not so</h1>", 405, {"Allow": error.valid_methods}))
    return app


@pytest.fixture
def app(deployment: Deployment) -> Flask:
    """A host app that serves our routes below `/api`."""
    app = host_app(dict(deployment.env))
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    return app


def test_a_job_lives_below_the_prefix(app: Flask) -> None:
    """The Location leads back to where the job was submitted."""
    client = app.test_client()
    answer = client.post("/api/jobs", json={"n": 5})
    assert answer.status_code == 202
    assert answer.headers["Location"].startswith("/api/jobs/")
    assert (client.get(answer.headers["Location"]).json or {})["status"] == "queued"


def test_the_location_counts_both_prefixes(app: Flask) -> None:
    """That of the blueprint and that of the server (`SCRIPT_NAME`)."""
    answer = app.test_client().post("/api/jobs", json={"n": 5}, environ_overrides={"SCRIPT_NAME": "/shop"})
    assert answer.headers["Location"].startswith("/shop/api/jobs/")


def test_the_location_counts_the_prefix_of_an_outer_blueprint(deployment: Deployment) -> None:
    """A blueprint inside a blueprint; only what is below ours is ours."""
    app, outer = host_app(dict(deployment.env)), Blueprint("outer", "outer", url_prefix="/v1")
    outer.register_blueprint(JobsBlueprint(), url_prefix="/async")
    app.register_blueprint(outer)
    client = app.test_client()
    answer = client.post("/v1/async/jobs", json={"n": 5})
    assert answer.headers["Location"].startswith("/v1/async/jobs/")
    assert client.get(answer.headers["Location"]).status_code == 200
    assert client.get("/v1/async/nobody").content_type == PROBLEM
    assert client.get("/v1/nobody").data == b"<h1>Lost?</h1>"


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/", 200, b"home"),
        ("POST", "/apiary", 200, b"bees"),
        ("GET", "/nobody", 404, b"<h1>Lost?</h1>"),
        ("GET", "/jobs", 404, b"<h1>Lost?</h1>"),
        ("POST", "/", 405, b"<h1>Not so</h1>"),
        ("GET", "/apiary", 405, b"<h1>Not so</h1>"),
        ("GET", "/apiaries", 404, b"<h1>Lost?</h1>"),
    ],
)
def test_what_is_outside_the_prefix_stays_as_it_was(
    app: Flask, method: str, path: str, status: int, body: bytes
) -> None:
    """The host's pages and its own way to say no."""
    answer = app.test_client().open(path, method=method)
    assert (answer.status_code, answer.data, answer.content_type) == (status, body, HTML)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/nobody", 404),
        ("GET", "/api", 404),
        ("GET", "/api/", 404),
        ("PUT", "/api/jobs", 405),
        ("POST", "/api/jobs/", 404),
        ("GET", "/api/jobs/x", 404),
        ("POST", "/api/jobs", 400),
    ],
)
def test_what_is_below_the_prefix_is_a_problem(app: Flask, method: str, path: str, status: int) -> None:
    """Whatever handlers the host has for its own pages."""
    answer = app.test_client().open(path, method=method)
    assert (answer.status_code, answer.content_type) == (status, PROBLEM)
    assert ("Allow" in answer.headers) == (status == 405)


def test_without_a_prefix_only_jobs_is_ours(deployment: Deployment) -> None:
    """The host keeps every other path at the root."""
    app = host_app(dict(deployment.env))
    app.register_blueprint(JobsBlueprint())
    client = app.test_client()
    assert client.post("/jobs", json={"n": 5}).headers["Location"].startswith("/jobs/")
    assert [client.get(path).content_type for path in ("/jobs/x", "/jobs/x/y", "/jobsite", "/nobody")] == [
        PROBLEM,
        PROBLEM,
        HTML,
        HTML,
    ]


def test_two_blueprints_in_one_app_keep_apart(deploy: Callable[..., Deployment]) -> None:
    """Each has its deployment, its prefix and its Locations."""
    one, two = deploy(), deploy()
    app = Flask("host")
    app.register_blueprint(JobsBlueprint(one.settings, "first"), url_prefix="/one")
    app.register_blueprint(JobsBlueprint(two.settings, "second"), url_prefix="/two")
    client = app.test_client()
    here, there = (client.post(f"/{name}/jobs", json={"n": 5}).headers["Location"] for name in ("one", "two"))
    assert here.startswith("/one/jobs/")
    assert there.startswith("/two/jobs/")
    assert (one.queued(), two.queued()) == (1, 1)
    assert [client.get(path).status_code for path in (here, there)] == [200, 200]
    assert client.get(here.replace("/one", "/two")).status_code == 404
    assert client.get("/two/nobody").content_type == PROBLEM


def test_one_blueprint_may_be_registered_twice(deployment: Deployment) -> None:
    """Under two names it is two doors to one house, as Flask allows for any blueprint."""
    app, blueprint = Flask("host"), JobsBlueprint(deployment.settings)
    app.register_blueprint(blueprint, url_prefix="/old")
    app.register_blueprint(blueprint, url_prefix="/new", name="new")
    client = app.test_client()
    location = client.post("/new/jobs", json={"n": 5}).headers["Location"]
    assert location.startswith("/new/jobs/")
    assert client.get(location.replace("/new", "/old")).status_code == 200
    assert client.get("/new/nobody").content_type == PROBLEM


@pytest.mark.parametrize("with_aj", [True, False])
def test_settings_come_from_the_config(deployment: Deployment, with_aj: bool) -> None:
    """With `AJ_` before the name or without; numbers and lists as Python writes them."""
    config: dict[str, Any] = {**deployment.env, "AJ_MAX_QUEUED": 1, "AJ_TASKS": ["tests.support.tasks"]}
    app = host_app({name if with_aj else name.removeprefix("AJ_"): value for name, value in config.items()})
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    client = app.test_client()
    assert [client.post("/api/jobs", json={"n": 5}).status_code for _ in range(2)] == [202, 503]
    assert deployment.queued() == 1


def test_an_aj_name_wins_over_the_bare_one(deployment: Deployment) -> None:
    """A bare name may be another extension's."""
    app = host_app({**deployment.env, "REDIS_URL": "redis://127.0.0.1:1/0"})
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    assert app.test_client().post("/api/jobs", json={"n": 5}).status_code == 202


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, "AJ_REDIS_URL"),
        ({"AJ_REDIS_URL": "http://127.0.0.1"}, "AJ_REDIS_URL"),
        ({"AJ_REDIS_URL": "redis://127.0.0.1:1/0?decode_responses=True"}, "decode_responses"),
        ({"AJ_REDIS_URL": "redis://127.0.0.1:1", "AJ_RESULT_TTL_S": 0}, "AJ_RESULT_TTL_S"),
        ({"AJ_REDIS_URL": "redis://127.0.0.1:1", "TASKS": "no.such.module"}, "no.such.module"),
    ],
)
def test_a_wrong_setting_stops_the_app_at_once(config: dict[str, Any], named: str) -> None:
    """At registration, with one line that names the setting, and not at the first request."""
    app = Flask("host")
    app.config.update(config)
    with pytest.raises(SettingsError, match=named) as caught:
        app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    assert "\n" not in str(caught.value)
