"""The receiver's answers, one request at a time, in this process."""

from __future__ import annotations

import base64
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from aj import clock
from aj.settings import Settings
from aj.signature import sign
from hooksink.receipts import parse_line
from hooksink.receiver import create_app

KEY, OLD_KEY = b"k" * 32, b"o" * 32
JOB = b'{"type": "job.succeeded", "job_id": "0193a5b1", "status": "succeeded", "result": 55}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hook.log"


@pytest.fixture
def client(path: Path) -> FlaskClient:
    """A receiver without secrets."""
    return create_app(Settings(), str(path)).test_client()


@pytest.fixture
def strict(path: Path) -> FlaskClient:
    """A receiver with a new and an old secret."""
    return create_app(Settings(webhook_secrets=(KEY, OLD_KEY)), str(path)).test_client()


def signed(key: bytes = KEY, body: bytes = JOB, webhook_id: str = "msg_1", age_s: int = 0) -> dict[str, str]:
    timestamp_s = clock.now_ms() // 1000 - age_s
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign([key], webhook_id, timestamp_s, body),
    }


def problem(response: TestResponse) -> tuple[int, str]:
    """Status and end of `type`, after a look at the rest of the problem."""
    assert response.mimetype == "application/problem+json"
    document = response.get_json()
    assert document["status"] == response.status_code
    assert document["title"]
    assert document["detail"]
    return response.status_code, document["type"].rpartition(":")[2]


def test_a_job_document_is_received_and_logged(client: FlaskClient, path: Path) -> None:
    """200 with a small body, and one line in the log."""
    response = client.post("/", data=JOB, headers={"webhook-id": "msg_1"})
    assert (response.status_code, response.get_json()) == (200, {"received": True, "duplicate": False})
    receipt = parse_line(path.read_bytes())
    assert receipt is not None
    assert (receipt.job_id, receipt.status, receipt.webhook_id) == ("0193a5b1", "succeeded", "msg_1")
    assert (receipt.signature, receipt.duplicate) == ("none", False)


def test_a_repeated_webhook_is_answered_well_and_marked(client: FlaskClient, path: Path) -> None:
    """The sender may stop; the log says that it was a repetition."""
    for _ in range(2):
        response = client.post("/", data=JOB, headers={"webhook-id": "msg_1"})
    assert (response.status_code, response.get_json()) == (200, {"received": True, "duplicate": True})
    assert [line.split()[-1] for line in path.read_bytes().splitlines()] == [b"duplicate=false", b"duplicate=true"]


@pytest.mark.parametrize("target", ["/", "/hooks", "/a/b/", "/a//b", "/receipts", "/a%0Ab", "/%ff", "/é", "/x?y=1"])
def test_every_path_takes_a_webhook(client: FlaskClient, target: str) -> None:
    """No redirect and no 404 for a POST."""
    assert client.post(target, data=JOB).status_code == 200


@pytest.mark.parametrize("key", [KEY, OLD_KEY])
def test_a_signature_by_any_secret_is_valid(strict: FlaskClient, path: Path, key: bytes) -> None:
    """While a secret is being replaced both are accepted."""
    assert strict.post("/", data=JOB, headers=signed(key)).status_code == 200
    assert b" signature=valid " in path.read_bytes()


def test_a_webhook_of_the_reference_library_is_valid(strict: FlaskClient) -> None:
    """What `standardwebhooks` signs is accepted."""
    headers = signed()
    secret = "whsec_" + base64.b64encode(KEY).decode()
    moment = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    headers["webhook-signature"] = standardwebhooks.Webhook(secret).sign("msg_1", moment, JOB.decode())
    assert strict.post("/", data=JOB, headers=headers).status_code == 200


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_400(strict: FlaskClient, path: Path, name: str) -> None:
    """A sender that does not sign is told so, and nothing is logged."""
    headers = signed()
    del headers[name]
    assert problem(strict.post("/", data=JOB, headers=headers)) == (400, "signature-missing")
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (signed(b"x" * 32), JOB),
        (signed(body=JOB + b" "), JOB),
        (signed(age_s=3000), JOB),
        (signed(age_s=-3000), JOB),
        ({**signed(), "webhook-id": "msg_2"}, JOB),
        ({**signed(), "webhook-signature": "v1,\u00e9"}, JOB),
        ({**signed(), "webhook-signature": "v2,AAAA"}, JOB),
    ],
)
def test_a_wrong_or_stale_signature_is_401(
    strict: FlaskClient, path: Path, headers: dict[str, str], body: bytes
) -> None:
    """Refused with a challenge, and nothing is logged."""
    response = strict.post("/", data=body, headers=headers)
    assert problem(response) == (401, "signature-invalid")
    assert response.headers["WWW-Authenticate"]
    assert path.read_bytes() == b""


def test_the_signature_is_judged_before_the_document(strict: FlaskClient) -> None:
    """Who cannot sign learns nothing about what would be accepted."""
    assert problem(strict.post("/", data=b"not json", headers=signed(b"x" * 32)))[0] == 401


@pytest.mark.parametrize("status", ["queued", "running", "succeeded", "failed"])
def test_the_four_words_of_a_job_are_taken(client: FlaskClient, status: str) -> None:
    """A job document may be sent in any status."""
    assert client.post("/", data=json.dumps({"job_id": "a", "status": status})).status_code == 200


def test_hostile_text_stays_inside_its_field(client: FlaskClient, path: Path) -> None:
    """Newlines and forged fields in `job_id` and `webhook-id` give one line with the values as they were."""
    job_id = 'x" duplicate=true\n2026-11-29T15:00:00.123Z job_id=é'
    body = json.dumps({"job_id": job_id, "status": "failed"})
    assert client.post("/", data=body, headers={"webhook-id": 'a" b=c'}).status_code == 200
    receipt = parse_line(path.read_bytes())
    assert receipt is not None
    assert (receipt.job_id, receipt.webhook_id) == (job_id, 'a" b=c')


def test_an_endless_webhook_id_is_400(client: FlaskClient) -> None:
    """A line of the log has a bound."""
    assert problem(client.post("/", data=JOB, headers={"webhook-id": "a" * 256}))[0] == 400


def test_a_log_that_fails_is_503_and_no_receipt(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a 2xx for what is not on disk; the sender comes again."""

    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    response = client.post("/", data=JOB)
    assert problem(response) == (503, "log-unavailable")
    assert int(response.headers["Retry-After"]) >= 1


def test_the_receipts_are_listed_newest_first(client: FlaskClient) -> None:
    """The last hundred, as JSON, never cached."""
    for number in range(103):
        client.post("/", data=json.dumps({"job_id": f"job {number}", "status": "failed"}))
    response = client.get("/receipts")
    listed: list[dict[str, Any]] = response.get_json()["receipts"]
    assert [each["job_id"] for each in listed] == [f"job {number}" for number in range(102, 2, -1)]
    assert list(listed[0]) == ["received_at", "job_id", "status", "webhook_id", "signature", "duplicate"]
    assert response.headers["Cache-Control"] == "no-store"


def test_the_list_of_no_receipts_is_empty(client: FlaskClient) -> None:
    """An empty log is no error."""
    assert client.get("/receipts").get_json() == {"receipts": []}


def test_a_log_that_is_gone_is_503_for_the_list(client: FlaskClient, path: Path) -> None:
    """What cannot be read is not said to be empty."""
    path.unlink()
    assert problem(client.get("/receipts"))[0] == 503


def test_the_root_says_what_this_is(client: FlaskClient) -> None:
    """One line of JSON."""
    assert client.get("/").get_json()["name"] == "hooksink"


@pytest.mark.parametrize("target", ["/", "/receipts"])
def test_head_is_get_without_its_body(client: FlaskClient, target: str) -> None:
    """The same headers, no bytes."""
    head, get = client.head(target), client.get(target)
    assert (head.status_code, head.data) == (200, b"")
    assert dict(head.headers) == dict(get.headers)


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("GET", "/hooks", {"POST", "OPTIONS"}),
        ("HEAD", "/hooks", {"POST", "OPTIONS"}),
        ("PUT", "/hooks", {"POST", "OPTIONS"}),
        ("DELETE", "/receipts", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("PATCH", "/", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("BREW", "/", {"GET", "HEAD", "POST", "OPTIONS"}),
    ],
)
def test_another_method_is_405_with_allow(client: FlaskClient, method: str, target: str, allowed: set[str]) -> None:
    """A problem too, and it says what may be done instead."""
    response = client.open(target, method=method)
    assert response.status_code == 405
    assert response.mimetype == "application/problem+json"
    assert set(response.headers["Allow"].split(", ")) == allowed


def test_a_fault_of_ours_is_a_problem(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """500 without a word about the cause."""
    app = create_app(Settings(), str(path))
    monkeypatch.setattr("hooksink.receiver.parse_job", lambda body: 1 / 0)
    response = app.test_client().post("/", data=JOB)
    assert problem(response)[0] == 500
    assert b"division" not in response.data
