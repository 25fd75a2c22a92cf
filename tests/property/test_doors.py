"""Requests that strangers make, through the whole of Flask: a document or a problem, never a 500.

The store is left out: what it holds is given, and what it is asked is not carried out.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import blake2b

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

from aj import create_app
from aj.answers import EXTENSION
from aj.job import Callback, CallbackState, Job, Status, new_job_id
from aj.settings import Settings
from aj.signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from aj.store import Answer, Found, Verdict
from hooksink.receiver import create_app as create_hooksink
from tests.property.hostile import header_text, hostile_bytes, hostile_text, json_values

JOB = Job(
    id=new_job_id(1_800_000_000_000),
    status=Status.SUCCEEDED,
    task="square",
    created_ms=1_800_000_000_000,
    outcome=b"25",
    callback_url="http://127.0.0.1/",
    callback=Callback(CallbackState.PENDING),
)
ETAG = blake2b(JOB.document(), digest_size=16).hexdigest()
MATCHES = ("W/", f'"{ETAG}"', ETAG, '"', "*", ",", " ", '"other"')
SECRET = "whsec_" + "bmV3ZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"


class NoStore:
    """Accepts every submission and keeps none."""

    def submit(self, job_id: str, *_: object) -> Answer:
        return Answer(Verdict.CREATED, job_id)


@pytest.fixture(scope="module")
def api() -> FlaskClient:
    app: Flask = create_app(
        Settings.from_env({"AJ_REDIS_URL": "redis://127.0.0.1:1/0", "AJ_TASKS": "tests.support.tasks"})
    )
    made = app.extensions[EXTENSION]["aj"]
    stub = replace(made.submit, jobs=NoStore())
    app.extensions[EXTENSION]["aj"] = replace(made, submit=stub, find=lambda _: Found(JOB, age_s=1.0))
    return app.test_client()


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    log = tmp_path_factory.mktemp("sink") / "hook.log"
    return create_hooksink(Settings.from_env({"AJ_WEBHOOK_SECRETS": SECRET}), str(log)).test_client()


@pytest.fixture(scope="module")
def open_sink(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    log = tmp_path_factory.mktemp("sink") / "hook.log"
    return create_hooksink(Settings.from_env({}), str(log)).test_client()


def assert_problem(answer: TestResponse, *statuses: int) -> None:
    assert answer.status_code in statuses, answer.text
    assert answer.mimetype == "application/problem+json"
    document = json.loads(answer.data)
    assert document["status"] == answer.status_code
    assert {"type", "title", "detail"} <= set(document)


headers = st.dictionaries(
    st.sampled_from(["If-None-Match", "If-Match", "Prefer", "Accept", "If-Modified-Since", "Range", "X-Forwarded-For"]),
    header_text("wait", "=", "5", "respond-async", *MATCHES),
)


@given(headers=headers)
def test_a_status_is_read_whatever_conditions_come_with_it(api: FlaskClient, headers: dict[str, str]) -> None:
    """200 with the document, 304 without, 412; a condition that cannot be read is no reason to fail."""
    answer = api.get(f"/jobs/{JOB.id}", headers=Headers(list(headers.items())))
    assert answer.status_code in (200, 304, 412), answer.text
    if answer.status_code != 412:
        assert answer.headers["ETag"] == f'"{ETAG}"'
        assert answer.data == (JOB.document() if answer.status_code == 200 else b"")
    else:
        assert_problem(answer, 412)
    if "If-Match" not in headers and "If-None-Match" not in headers:
        assert answer.status_code == 200


@given(before=st.lists(st.sampled_from(['"x"', 'W/"y"', '"a,b"']), max_size=3), weak=st.booleans())
def test_a_match_is_found_wherever_it_stands(api: FlaskClient, before: list[str], weak: bool) -> None:
    """Strong or weak, among others: If-None-Match compares weakly."""
    tags = [*before, f'W/"{ETAG}"' if weak else f'"{ETAG}"', '"last"']
    assert api.get(f"/jobs/{JOB.id}", headers={"If-None-Match": ", ".join(tags)}).status_code == 304


@given(
    job_id=hostile_text(JOB.id, "../", "jobs", "%2f"), method=st.sampled_from(["GET", "HEAD", "POST", "DELETE", "PUT"])
)
def test_any_path_is_answered(api: FlaskClient, job_id: str, method: str) -> None:
    """Ids are opaque: a malformed one is 404."""
    answer = api.open("/jobs/" + job_id.encode("utf-8", "replace").decode().replace("\x00", ""), method=method)
    assert answer.status_code in (200, 404, 405), answer.text


JSON_PIECES = (
    b'{"n": 5',
    b'"n":',
    b"5",
    b"}",
    b"{",
    b', "metadata": ',
    b', "callback_url": "',
    b'"',
    b"null",
    b"{}",
    b"[",
)


@given(
    body=hostile_bytes(*JSON_PIECES),
    kind=st.sampled_from(["application/json", "application/json; charset=utf-16", ""])
    | header_text("application/", "json"),
    key=st.none() | header_text('"', "abc"),
)
def test_any_submission_is_answered(api: FlaskClient, body: bytes, kind: str, key: str | None) -> None:
    """202, or a problem that says what is wrong with it."""
    sent = {"Content-Type": kind} if key is None else {"Content-Type": kind, "Idempotency-Key": key}
    answer = api.post("/jobs", data=body, headers=sent)
    if answer.status_code != 202:
        assert_problem(answer, 400, 413, 415, 422)


names = st.sampled_from(["n", "task", "callback_url", "metadata", "text", "public", "fractions"]) | st.text(max_size=4)
values = json_values | st.sampled_from(["square", "fail", "report", "http://127.0.0.1:8141/", "http://[::1]/", 5])


@given(members=st.dictionaries(names, values, max_size=4))
def test_any_json_object_is_answered(api: FlaskClient, members: dict[str, object]) -> None:
    """Whatever JSON can hold, in whatever member: each error has a pointer, and none repeats a long value."""
    answer = api.post("/jobs", data=json.dumps(members), headers={"Content-Type": "application/json"})
    if answer.status_code != 202:
        assert_problem(answer, 400, 422)
        for error in json.loads(answer.data).get("errors", []):
            assert error["pointer"].startswith("#")
            assert error["pointer"].isascii()


document = json.dumps({"job_id": "x", "status": "failed"}).encode()
signatures = st.dictionaries(
    st.sampled_from([ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER, "Content-Encoding", "Content-Type"]),
    header_text("v1,", "1700000000", "msg_1", "gzip", "identity"),
)


@given(body=hostile_bytes(document, b'{"job_id":'), headers=signatures, path=hostile_text("hook", "//", "?"))
def test_a_receiver_with_secrets_takes_nothing_from_strangers(
    sink: FlaskClient, body: bytes, headers: dict[str, str], path: str
) -> None:
    """Every webhook that is not signed by us is a problem of theirs."""
    target = "/" + path.encode("utf-8", "replace").decode().replace("\x00", "").lstrip("/")
    assert_problem(sink.post(target, data=body, headers=headers), 400, 401, 415)


@given(body=hostile_bytes(document, document, b'{"job_id":'), headers=signatures)
def test_a_receiver_without_secrets_takes_job_documents_only(
    open_sink: FlaskClient, monkeypatch: pytest.MonkeyPatch, body: bytes, headers: dict[str, str]
) -> None:
    """And each that it takes is one whole line of its log, whatever the headers hold."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    answer = open_sink.post("/", data=body, headers=headers)
    if answer.status_code != 200:
        assert_problem(answer, 400, 415)
        return
    [newest, *_] = json.loads(open_sink.get("/receipts").data)["receipts"]
    assert newest["webhook_id"] == headers.get(ID_HEADER, "")
