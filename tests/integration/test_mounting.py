"""The blueprint as a guest in somebody's app: any prefix, any name, more than one, and hands off the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from flask import Blueprint, Flask
from flask.testing import FlaskClient
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix

from aj import JobsBlueprint
from aj.errors import SettingsError
from tests.conftest import Deployment
from tests.support.host_app import HTML, PROBLEM, host_app

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


@pytest.fixture
def app(deployment: Deployment) -> Flask:
    """A host app that serves our routes below `/api`."""
    app = host_app(deployment.env)
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    return app


def test_a_job_lives_below_the_prefix(app: Flask) -> None:
    """The Location leads back to where the job was submitted."""
    client = app.test_client()
    answer = client.post("/api/jobs", json={"n": 5})
    assert answer.status_code == 202
    assert answer.headers["Location"].startswith("/api/jobs/")
    assert (client.get(answer.headers["Location"]).json or {})["status"] == "queued"


@pytest.mark.parametrize("prefix", ["/api/", "/a/b/c", "/v1.0~x", "/größe", "/with space", "/jobs"])
def test_any_prefix_will_do(deployment: Deployment, prefix: str) -> None:
    """Deep, with a slash at its end, with characters that an address must escape, or named as our own route."""
    app = host_app(deployment.env)
    app.register_blueprint(JobsBlueprint(), url_prefix=prefix)
    client, base = app.test_client(), prefix.rstrip("/")
    answer = client.post(f"{base}/jobs", json={"n": 5})
    assert answer.headers["Location"] == f"{quote(base, safe='/~')}/jobs/{(answer.json or {})['job_id']}"
    assert client.get(answer.headers["Location"]).status_code == 200
    assert client.get(f"{base}/nobody").content_type == PROBLEM
    assert client.get(f"{base}x/nobody").data == b"<h1>Lost?</h1>"


# -- behind a proxy ------------------------------------------------------------------------------------------


def in_shop(inner: WSGIApplication, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    return inner({**environ, "SCRIPT_NAME": "/shop"}, start_response)


def by_server(app: Flask) -> FlaskClient:
    """The server was told the prefix, as gunicorn is by its environment."""
    app.wsgi_app = partial(in_shop, app.wsgi_app)  # type: ignore[method-assign]
    return app.test_client()


def by_header(app: Flask) -> FlaskClient:
    """The proxy says it in each request, and has cut it off the path."""
    app.wsgi_app = ProxyFix(app.wsgi_app, x_prefix=1, x_host=1, x_proto=1)  # type: ignore[method-assign]
    client = app.test_client()
    forwarded = {"PREFIX": "/shop", "HOST": "shop.example", "PROTO": "https"}
    client.environ_base.update({f"HTTP_X_FORWARDED_{name}": value for name, value in forwarded.items()})
    return client


@pytest.mark.parametrize("proxied", [by_server, by_header])
def test_every_address_counts_the_prefix_of_the_proxy(app: Flask, proxied: Callable[[Flask], FlaskClient]) -> None:
    """In Location, Link and the OpenAPI document; what is refused is refused as without one."""
    client = proxied(app)
    locations = [client.post("/api/jobs", json={"n": 5}).headers["Location"] for _ in range(2)]
    assert all(each.startswith("/shop/api/jobs/") for each in locations)
    assert client.get(locations[0].removeprefix("/shop")).status_code == 200
    assert client.get("/api/jobs?limit=1").headers["Link"].startswith("</shop/api/jobs?limit=1&cursor=")
    assert (client.get("/api/openapi.json").json or {})["servers"] == [{"url": "/shop/api"}]
    assert client.get("/api/nobody").content_type == PROBLEM
    assert client.get("/nobody").data == b"<h1>Lost?</h1>"


def test_an_app_may_be_mounted_in_another(app: Flask) -> None:
    """By WSGI; the outer one keeps every path that it has not given away."""
    outer = host_app({})
    outer.wsgi_app = DispatcherMiddleware(outer.wsgi_app, {"/shop": app})  # type: ignore[method-assign]
    client = outer.test_client()
    location = client.post("/shop/api/jobs", json={"n": 5}).headers["Location"]
    assert location.startswith("/shop/api/jobs/")
    assert client.get(location).status_code == 200
    assert client.get("/shop/api/nobody").content_type == PROBLEM
    assert client.get("/api/nobody").data == b"<h1>Lost?</h1>"


def test_the_location_counts_the_prefix_of_an_outer_blueprint(deployment: Deployment) -> None:
    """A blueprint inside a blueprint; only what is below ours is ours."""
    app, outer = host_app(deployment.env), Blueprint("outer", "outer", url_prefix="/v1")
    outer.register_blueprint(JobsBlueprint(), url_prefix="/async")
    app.register_blueprint(outer)
    client = app.test_client()
    answer = client.post("/v1/async/jobs", json={"n": 5})
    assert answer.headers["Location"].startswith("/v1/async/jobs/")
    assert client.get(answer.headers["Location"]).status_code == 200
    assert client.get("/v1/async/nobody").content_type == PROBLEM
    assert client.get("/v1/nobody").data == b"<h1>Lost?</h1>"


# -- more than one of us, and settings -----------------------------------------------------------------------


def test_without_a_prefix_only_jobs_is_ours(deployment: Deployment) -> None:
    """The host keeps every other path at the root."""
    app = host_app(deployment.env)
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
        ({"AJ_REDIS_URL": "redis://127.0.0.1:1", "AJ_DASHBOARD_OPERATORS": "alice"}, "alice"),
    ],
)
def test_a_wrong_setting_stops_the_app_at_once(config: dict[str, Any], named: str) -> None:
    """At registration, with one line that names the setting, and not at the first request."""
    app = Flask("host")
    app.config.update(config)
    with pytest.raises(SettingsError, match=named) as caught:
        app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"url_prefix": "/<tenant>"},
        {"url_prefix": "/api", "url_defaults": {"tenant": "a"}},
        {"url_prefix": "/<tenant>", "url_defaults": {"tenant": "a"}},
    ],
)
def test_values_that_no_route_takes_are_refused_at_registration(
    deployment: Deployment, options: dict[str, Any]
) -> None:
    """Each request would be answered 500."""
    app = host_app(deployment.env)
    with pytest.raises(SettingsError, match="the blueprint cannot be registered"):
        app.register_blueprint(JobsBlueprint(), **options)


def test_an_operator_shuts_the_dashboard_and_hears_of_a_slip(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the environment alone, in an app that takes what begins with `AJ_` as the documents say."""
    for name, text in {**deployment.env, "AJ_DASHBOARD": "off", "AJ_TIMEOUT": "5"}.items():
        monkeypatch.setenv(name, text)
    app = host_app({})
    app.config.from_prefixed_env("AJ")
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    assert app.test_client().get("/api/dashboard").status_code == 404
    assert app.test_client().post("/api/jobs", json={"n": 5}).status_code == 202
    assert "AJ_TIMEOUT is not a setting of this version; did you mean AJ_JOB_TIMEOUT_S?" in caplog.text


def test_the_slip_that_would_leave_the_api_open_is_refused(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`AJ_API_KEY` is a caller's; with the digest of a key in it somebody meant `AJ_API_KEYS`."""
    app = host_app(deployment.env)
    for name in ("AJ_API_KEY", "AJ_APIKEYS"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "shop:" + 64 * "a")
            with pytest.raises(SettingsError, match="did you mean AJ_API_KEYS"):
                app.register_blueprint(JobsBlueprint(name=name), url_prefix="/api")
    monkeypatch.setenv("AJ_API_KEY", "shop:" + 64 * "a")
    app.config["AJ_API_KEYS"] = "shop:" + 64 * "a"
    app.register_blueprint(JobsBlueprint(name="guarded"), url_prefix="/guarded")
