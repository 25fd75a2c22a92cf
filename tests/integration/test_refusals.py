"""Every submission that is refused: its status, its problem document, and that nothing of it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.conftest import Deployment
from tests.support.jobs import submit
from tests.support.own_store import all_that_is_stored, own_deployment
from tests.support.raw_http import problem_slug

LIMIT_BYTES = 65_536


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment that has its server for itself, so that all keys can be compared; one job waits in it."""
    with own_deployment(tmp_path_factory.mktemp("alone") / "store", AJ_MAX_QUEUED="2") as deployment:
        submit(deployment.client(), n=1)
        yield deployment


def refused(deployment: Deployment, body: bytes, **request: Any) -> TestResponse:
    """Sends `body`; asserts that a problem comes back and that the store is as it was."""
    before = all_that_is_stored(deployment)
    answer = deployment.client().post("/jobs", data=body, **{"content_type": "application/json", **request})
    assert answer.content_type == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Location" not in answer.headers
    shown = json.loads(answer.data)
    assert shown.keys() - {"errors"} == {"type", "title", "status", "detail"}
    assert shown["status"] == answer.status_code
    assert all(isinstance(shown[name], str) and shown[name] for name in ("type", "title", "detail"))
    assert all(each.keys() == {"pointer", "detail"} for each in shown.get("errors", []))
    assert all_that_is_stored(deployment) == before
    return answer


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \r\n\t",
        b"{",
        b"n=5",
        b"{'n': 5}",
        b'{"n": 5,}',
        b'{"n": 05}',
        b'{"n": 5} x',
        b'{"n": 5}{"n": 5}',
        b'{"n": 5}\x00',
        b'{"n": "\x01"}',
        b'{"n": "\xff"}',
        b'{"n": "\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"n": 5}',
        '{"n": 5}'.encode("utf-16"),
        '{"n": 5}'.encode("utf-32"),
        b'{"n": 5, "n": 5}',
        b'{"n": 5, "\\u006e": 6}',
        b'{"n": 5, "metadata": {"a": {"b": 1, "b": 2}}}',
        b'{"n": NaN}',
        b'{"n": 5, "metadata": {"x": Infinity}}',
        b'{"n": -Infinity}',
        b'{"n": 1e400}',
        b'{"n": -1e400}',
        b'{"n": ' + b"9" * 5000 + b"}",
        b'{"n": ' + b"[" * 64 + b"]" * 64 + b"}",
        b"[" * 20_000,
        b'{"n":' * 10_000,
        b'{"n": "\\ud800"}',
        b'{"\\udc00": 5}',
        b'{"n": "\\ud800\\ud800"}',
    ],
    ids=lambda body: repr(body)[:30],
)
def test_a_body_that_is_not_clean_json_gives_400(alone: Deployment, body: bytes) -> None:
    """What two readers could understand in two ways, or what no reader should have to try, is not guessed at."""
    answer = refused(alone, body)
    assert answer.status_code == 400
    assert problem_slug(answer.json) == "malformed-body"


def test_a_body_that_ends_early_gives_400(alone: Deployment) -> None:
    """What was cut off may happen to be whole JSON; it is not what the caller wanted to say."""
    answer = refused(alone, b'{"n": 5}', environ_overrides={"CONTENT_LENGTH": "9"})
    assert answer.status_code == 400
    assert problem_slug(answer.json) == "malformed-body"


@pytest.mark.parametrize("body", [b"[]", b"5", b"null", b'"x"', b"true", b'[{"n": 5}]'])
def test_json_that_is_not_an_object_gives_422(alone: Deployment, body: bytes) -> None:
    """It can be read, so the fault is in what it says."""
    answer = refused(alone, body)
    assert answer.status_code == 422
    assert problem_slug(answer.json) == "invalid-submission"


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, {"#/n"}),
        ({"n": True}, {"#/n"}),
        ({"n": 5.0}, {"#/n"}),
        ({"n": "5"}, {"#/n"}),
        ({"n": None}, {"#/n"}),
        ({"n": [5]}, {"#/n"}),
        ({"n": 5, "m": 1}, {"#/m"}),
        ({"n": 5, "a/b~c d%": 1}, {"#/a~1b~0c%20d%25"}),
        ({"n": 5, "ü": 1}, {"#/%C3%BC"}),
        ({"n": 5, "": 1}, {"#/"}),
        ({"task": "report", "fractions": [0.5, "x", True]}, {"#/fractions/1", "#/fractions/2"}),
        ({"n": 5, "task": "nobody"}, {"#/task"}),
        ({"n": 5, "task": "os.system"}, {"#/task"}),
        ({"n": 5, "task": 5}, {"#/task"}),
        ({"n": 5, "task": ["square"]}, {"#/task"}),
        ({"n": 5, "task": ""}, {"#/task"}),
        ({"n": 5, "metadata": []}, {"#/metadata"}),
        ({"n": 5, "metadata": "x"}, {"#/metadata"}),
        ({"n": 5, "metadata": {"x": "y" * 4089}}, {"#/metadata"}),
        ({"n": 5, "callback_url": 5}, {"#/callback_url"}),
        ({"n": 5, "callback_url": ""}, {"#/callback_url"}),
        ({"n": 5, "callback_url": "ftp://example.com/"}, {"#/callback_url"}),
        ({"n": 5, "callback_url": "http://user:pw@example.com/"}, {"#/callback_url"}),
        ({"n": 5, "callback_url": "http://10.0.0.1/"}, {"#/callback_url"}),
        ({"n": 5, "callback_url": "http://localhost/"}, {"#/callback_url"}),
        ({"n": 5, "callback_url": "http://169.254.169.254/latest"}, {"#/callback_url"}),
        ({"n": "5", "m": 1, "metadata": 1, "callback_url": 1}, {"#/n", "#/m", "#/metadata", "#/callback_url"}),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else "",
)
def test_each_wrong_member_is_pointed_at(alone: Deployment, body: dict[str, Any], pointers: set[str]) -> None:
    """All that is wrong is said at once, each by a JSON Pointer in the form of a URI fragment."""
    answer = refused(alone, json.dumps(body).encode())
    assert answer.status_code == 422
    assert problem_slug(answer.json) == "invalid-submission"
    errors = (answer.json or {})["errors"]
    assert {each["pointer"] for each in errors} == pointers
    assert len(errors) == len(pointers)


def test_a_wrong_value_is_not_repeated(alone: Deployment) -> None:
    """What a caller sent by mistake, such as a password, is not spread into logs by our answer."""
    body = b'{"n": "hunter2", "callback_url": "http://user:hunter2@example.com/", "metadata": "hunter2"}'
    assert b"hunter2" not in refused(alone, body).data


def test_a_body_over_the_limit_gives_413(alone: Deployment) -> None:
    """One byte over is over, whatever the body holds."""
    answer = refused(alone, b'{"n": 5}'.ljust(LIMIT_BYTES + 1))
    assert answer.status_code == 413
    assert problem_slug(answer.json) == "body-too-large"


def test_a_length_over_the_limit_is_refused_unread(alone: Deployment) -> None:
    """Nobody waits for a body that will not be taken."""
    answer = refused(alone, b"", environ_overrides={"CONTENT_LENGTH": "9" * 30})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/problem+json",
        "application/jsonp",
        "json",
    ],
)
def test_another_media_type_gives_415(alone: Deployment, content_type: str) -> None:
    """A form that a foreign page can send without asking is never taken; the answer says what is."""
    answer = refused(alone, b'{"n": 5}', content_type=content_type)
    assert answer.status_code == 415
    assert problem_slug(answer.json) == "unsupported-media-type"
    assert answer.headers["Accept"] == "application/json"


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
def test_a_coded_body_gives_415(alone: Deployment, coding: str) -> None:
    """A small body cannot grow into a large one here."""
    answer = refused(alone, b'{"n": 5}', headers={"Content-Encoding": coding})
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "key", ["", " ", "a b", '"a b"', '"a', 'a"', '"a"b', '"a" "b"', '"a";p=1', "a,b", '"a","b"', ":YQ==:x,", "a" * 256]
)
def test_a_malformed_idempotency_key_gives_400(alone: Deployment, key: str) -> None:
    """A key that is not understood is not ignored: the caller counts on it."""
    answer = refused(alone, b'{"n": 5}', headers={"Idempotency-Key": key})
    assert answer.status_code == 400
    assert problem_slug(answer.json) == "malformed-idempotency-key"


def test_a_key_for_another_payload_gives_422(alone: Deployment) -> None:
    """The job that has the key stays as it is."""
    alone.redis.flushall()
    submit(alone.client(), key="k", n=1)
    answer = refused(alone, b'{"n": 2}', headers={"Idempotency-Key": "k"})
    assert answer.status_code == 422
    assert problem_slug(answer.json) == "idempotency-key-reused"


@pytest.fixture
def full(alone: Deployment) -> Deployment:
    """A deployment whose queue holds as many jobs as `AJ_MAX_QUEUED` allows; the key of one is `first`."""
    alone.redis.flushall()
    for key in ("first", "second"):
        submit(alone.client(), key=key, n=1)
    return alone


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "third"}])
def test_a_full_queue_gives_503(full: Deployment, headers: dict[str, str]) -> None:
    """With the time after which to try again, in whole seconds."""
    answer = refused(full, b'{"n": 5}', headers=headers)
    assert answer.status_code == 503
    assert problem_slug(answer.json) == "queue-full"
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_full_queue_still_replays(full: Deployment) -> None:
    """A caller that repeats itself wants no second job and gets its first answer."""
    answer = full.client().post("/jobs", json={"n": 1}, headers={"Idempotency-Key": "first"})
    assert answer.status_code == 202
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert full.queued() == 2


def test_a_full_queue_takes_more_when_one_has_run(full: Deployment) -> None:
    """The bound is on what waits, not on what was."""
    full.worker().work_once()
    submit(full.client(), n=5)
    assert full.queued() == 2


def test_nesting_to_the_limit_is_not_refused(client: FlaskClient) -> None:
    """64 levels, the outer object counted, pass; brackets in strings are no levels."""
    deep = b'{"n": 5, "metadata": {"a": ' + b"[" * 62 + b"]" * 62 + b', "b": "' + b"[{" * 100 + b'"}}'
    assert client.post("/jobs", data=deep, content_type="application/json").status_code == 202
