"""What is outside the blueprint stays the host's, what is below it is ours: pages, errors, hooks, rules for paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import pytest
from flask import Flask, Request, request
from werkzeug.exceptions import HTTPException, default_exceptions

from aj import JobsBlueprint
from tests.conftest import Deployment
from tests.support.execution import raising
from tests.support.host_app import HTML, PROBLEM, host_app


@pytest.fixture
def app(deployment: Deployment) -> Flask:
    """A host app that serves our routes below `/api`."""
    app = host_app(deployment.env)
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    return app


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


def with_handlers(app: Flask) -> Flask:
    """A page of the host's own for every error there is: by its code, by its class and by its base."""
    for code in default_exceptions:
        app.register_error_handler(code, lambda error: ("by code", getattr(error, "code", 500)))
    for kind in (HTTPException, ValueError, Exception):
        app.register_error_handler(kind, lambda error: ("by class", getattr(error, "code", 500)))
    app.add_url_rule("/broken", view_func=raising(KeyError("key")), endpoint="broken")
    return app


def test_handlers_of_the_host_do_not_reach_below_the_prefix(app: Flask) -> None:
    """Nor do ours reach beyond it, whichever was registered first."""
    api = app.extensions["aj"]["aj"]
    client = with_handlers(app).test_client()
    location = client.post("/api/jobs", json={"n": 5}).headers["Location"]
    app.extensions["aj"]["aj"] = replace(api, cancel=raising(ValueError("x")))
    refused = [
        (client.get("/api/docs/nobody"), 404),
        (client.get(location, headers={"If-Match": '"x"'}), 412),
        (client.post("/api/jobs", data="x", content_type="text/plain"), 415),
        (client.put(location), 405),
        (client.post(f"{location}/cancel"), 500),
    ]
    assert [(answer.status_code, answer.content_type) for answer, _ in refused] == [
        (code, PROBLEM) for _, code in refused
    ]
    assert [client.get(path).data for path in ("/nobody", "/broken")] == [b"by code", b"by class"]


def test_a_host_without_handlers_keeps_the_pages_of_flask(deployment: Deployment) -> None:
    """Its 404 and its 500 are what they were."""
    answers = []
    for mounted in (False, True):
        app = Flask("host")
        app.config.update(deployment.env)
        app.add_url_rule("/broken", view_func=raising(KeyError("key")), endpoint="broken")
        if mounted:
            app.register_blueprint(JobsBlueprint(), url_prefix="/api")
        client = app.test_client()
        answers.append([(each.status_code, each.data) for each in map(client.get, ("/nobody", "/broken"))])
    assert answers[0] == answers[1]
    assert [status for status, _ in answers[0]] == [404, 500]


READERS: dict[str, Callable[[Request], object]] = {
    "data": Request.get_data,
    "json": lambda request: request.get_json(silent=True),
    "form": lambda request: request.form.get("csrf_token"),
    "values": lambda request: request.values.get("csrf_token"),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_hook_of_the_host_may_read_the_body_first(app: Flask, read: Callable[[Request], object]) -> None:
    """To log it, or to look for a token in it; our limit and our rules hold all the same."""

    @app.before_request
    def look() -> None:
        read(request)

    client = app.test_client()
    assert client.post("/api/jobs", json={"n": 5}).status_code == 202
    in_chunks = {"wsgi.input_terminated": True, "wsgi.input": BytesIO(b'{"n": 5}')}
    assert client.post("/api/jobs", environ_overrides=in_chunks).status_code == 202
    assert client.post("/api/jobs", json={"n": "five"}).status_code == 422
    assert client.post("/api/jobs", data=b" " * 70_000, content_type="application/json").status_code == 413
    short = client.post("/api/jobs", json={"n": 5}, environ_overrides={"CONTENT_LENGTH": "50"})
    assert (short.status_code, short.content_type) == (400, PROBLEM)


@pytest.mark.parametrize("option", ["strict_slashes", "merge_slashes"])
def test_the_hosts_rules_for_slashes_are_not_ours(deployment: Deployment, option: str) -> None:
    """A job has one address, and no slash too many is a redirect."""
    app = host_app(deployment.env)
    setattr(app.url_map, option, False)
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    client = app.test_client()
    location = client.post("/api/jobs", json={"n": 5}).headers["Location"]
    answers = [client.get(location + "/"), *(client.post(path, json={"n": 5}) for path in ("/api/jobs/", "/api//jobs"))]
    assert [(answer.status_code, answer.content_type) for answer in answers] == [(404, PROBLEM)] * 3


def test_a_host_may_answer_every_path(deployment: Deployment) -> None:
    """As the one page of a web application does. Our routes come first; what they leave is the host's."""
    app = host_app(deployment.env)
    app.add_url_rule("/<path:path>", view_func=lambda path: f"page {path}", endpoint="page")
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    client = app.test_client()
    location = client.post("/api/jobs", json={"n": 5}).headers["Location"]
    assert client.get(location).status_code == 200
    assert client.get("/api/jobs/x").content_type == PROBLEM
    assert client.put("/api/jobs").content_type == PROBLEM
    assert [client.get(path).text for path in ("/nobody", "/api/nobody")] == ["page nobody", "page api/nobody"]


def test_what_the_host_adds_to_addresses_stays_out_of_ours(app: Flask) -> None:
    """As a language in the query of each: every address that an answer names is one that works."""
    app.url_defaults(lambda _, values: values.setdefault("lang", "de"))
    client = app.test_client()
    locations = [client.post("/api/jobs", json={"n": n}).headers["Location"] for n in range(2)]
    links = client.get("/api/jobs?limit=1").headers["Link"]
    assert re.fullmatch(r'</api/jobs\?limit=1&cursor=[0-9a-f-]{36}>; rel="next"', links)
    assert (client.get("/api/openapi.json").json or {})["servers"] == [{"url": "/api"}]
    assert [client.get(each).status_code for each in locations] == [200, 200]
