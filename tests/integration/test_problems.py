"""Every error that leaves the API is a problem document, those of the framework and of our own mistakes included."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any, NoReturn

import pytest
from flask import Flask, abort
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from aj import create_app
from tests.conftest import Deployment

SECRET = "hunter2-in-the-exception"
NOBODYS = "/jobs/018f2b5e-0000-7000-8000-000000000000"


def assert_problem(answer: TestResponse, status: int) -> dict[str, Any]:
    """The members and headers that every problem has."""
    assert answer.status_code == status
    assert answer.content_type == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    shown = json.loads(answer.data)
    assert shown.keys() >= {"type", "title", "status", "detail"}
    assert shown["status"] == status
    assert shown["title"]
    assert shown["detail"]
    return dict(shown)


@pytest.mark.parametrize("path", ["/", "/nobody", "/jobs/", "/jobs/a/b", "/job", "/static/x", "/favicon.ico"])
def test_an_unknown_path_is_a_problem(client: FlaskClient, path: str) -> None:
    """Flask's own page for 404 is HTML."""
    assert_problem(client.get(path), 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/jobs", "POST"),
        ("PATCH", "/jobs", "POST"),
        ("TRACE", "/jobs", "POST"),
        ("POST", NOBODYS, "GET"),
        ("BREW", NOBODYS, "GET"),
    ],
)
def test_a_wrong_method_is_a_problem(client: FlaskClient, method: str, path: str, allowed: str) -> None:
    """And still says which methods are right."""
    answer = client.open(path, method=method)
    assert_problem(answer, 405)
    assert allowed in [each.strip() for each in answer.headers["Allow"].split(",")]


def test_a_head_request_gets_the_headers_of_the_problem(client: FlaskClient) -> None:
    """No body, as for every HEAD."""
    answer = client.head(NOBODYS)
    assert (answer.status_code, answer.content_type, answer.data) == (404, "application/problem+json", b"")


def broken_app(deployment: Deployment) -> Flask:
    """An app in which every verb raises what nobody foresaw."""

    def broken(*_: object) -> NoReturn:
        raise RuntimeError(SECRET)

    app = create_app(deployment.settings)
    app.extensions["aj"]["aj"] = replace(app.extensions["aj"]["aj"], submit=broken, find=broken)
    return app


@pytest.mark.parametrize("options", [{}, {"TESTING": True}, {"DEBUG": True}, {"PROPAGATE_EXCEPTIONS": True}], ids=str)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unforeseen_error_is_a_problem_that_tells_nothing(
    deployment: Deployment, caplog: pytest.LogCaptureFixture, method: str, options: dict[str, bool]
) -> None:
    """What broke stands in the log; the caller gets no text of it, no class, no line, in any mode of Flask."""
    app = broken_app(deployment)
    app.config.update(options)
    with caplog.at_level(logging.ERROR):
        answer = app.test_client().open(NOBODYS if method == "GET" else "/jobs", method=method, data='{"n": 5}')
    assert_problem(answer, 500)
    told = answer.get_data(as_text=True) + str(answer.headers)
    assert not [word for word in (SECRET, "hunter2", "RuntimeError", "Traceback", ".py") if word in told]
    assert SECRET in caplog.text
    job_id = vars(caplog.records[-1]).get("job_id")
    assert job_id == (NOBODYS.removeprefix("/jobs/") if method == "GET" else None)
    assert "Retry-After" not in answer.headers


def test_an_error_of_the_app_around_us_is_a_problem(deployment: Deployment) -> None:
    """A host app that refuses a request of ours, such as for a missing login, is answered in our form."""
    app = create_app(deployment.settings)
    app.before_request(lambda: abort(403, "Log in first."))
    assert assert_problem(app.test_client().get(NOBODYS), 403)["detail"] == "Log in first."


def test_a_limit_of_the_framework_does_not_cut_a_body(deployment: Deployment) -> None:
    """`MAX_CONTENT_LENGTH` of a host app is not our limit; ours holds, and a body is whole or refused."""
    app = create_app(deployment.settings)
    app.config["MAX_CONTENT_LENGTH"] = 4
    assert app.test_client().post("/jobs", json={"n": 5}).status_code == 202


def test_what_cannot_be_printed_does_not_break_a_problem(client: FlaskClient) -> None:
    """A detail that quotes half a character from the request is still UTF-8."""
    answer = client.post("/jobs", data=b"{}", headers={"Content-Type": "\xff/\xfe"})
    assert_problem(answer, 415)
    assert_problem(client.post("/jobs", data='{"\\ud800": 1, "\\ud800": 2}'), 400)
