"""Which bodies the receiver takes: their size, their coding, their end, and what counts as a job document."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from aj.settings import Settings
from hooksink.receiver import create_app

JOB = b'{"job_id": "0193a5b1", "status": "succeeded"}'
LIMIT_BYTES = 2**20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hook.log"


@pytest.fixture
def client(path: Path) -> FlaskClient:
    """A receiver without secrets."""
    return create_app(Settings(), str(path)).test_client()


def problem(response: TestResponse) -> tuple[int, str]:
    """Status and end of `type` of a problem."""
    assert response.mimetype == "application/problem+json"
    return response.status_code, response.get_json()["type"].rpartition(":")[2]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"[]",
        b"null",
        b'"job_id"',
        b"{}",
        b'{"job_id": "a"}',
        b'{"status": "failed"}',
        b'{"job_id": 5, "status": "failed"}',
        b'{"job_id": "", "status": "failed"}',
        b'{"job_id": null, "status": "failed"}',
        b'{"job_id": "a", "status": "finished"}',
        b'{"job_id": "a", "status": ["failed"]}',
        b'{"job_id": "a", "status": {}}',
        b'{"job_id": "\\ud800", "status": "failed"}',
        b'{"job_id": "' + b"a" * 256 + b'", "status": "failed"}',
        b'{"job_id": "a", "status": "failed", "n": NaN}',
        b'{"job_id": "a", "status": "failed", "n": -Infinity}',
        b'{"job_id": "a", "status": "failed", "n": ' + b"9" * 10_000 + b"}",
        b'{"job_id": "a", "status": "failed"} x',
        b'{"job_id": "\xff", "status": "failed"}',
        b'\xef\xbb\xbf{"job_id": "a", "status": "failed"}',
        '{"job_id": "a", "status": "failed"}'.encode("utf-16"),
        b"[" * 500_000,
        b'{"a":' * 100_000,
        b'{"job_id": "a\n", "status": "failed"}',
    ],
    ids=range(26),
)
def test_what_is_no_job_document_is_400(client: FlaskClient, path: Path, body: bytes) -> None:
    """Refused as a problem, never 500, and nothing is logged."""
    assert problem(client.post("/", data=body)) == (400, "not-a-job")
    assert path.read_bytes() == b""


def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_413(client: FlaskClient, path: Path) -> None:
    """The limit is 1 MiB, exactly."""
    body = JOB + b" " * (LIMIT_BYTES - len(JOB))
    assert client.post("/", data=body).status_code == 200
    assert problem(client.post("/", data=body + b" ")) == (413, "body-too-large")
    assert len(path.read_bytes().splitlines()) == 1


@pytest.mark.parametrize(("surplus_bytes", "status"), [(0, 200), (1, 413), (5 * 2**20, 413)])
def test_a_body_without_a_length_meets_the_same_limit(client: FlaskClient, surplus_bytes: int, status: int) -> None:
    """Chunked, of which at most one byte over the limit is read."""
    stream = BytesIO(JOB + b" " * (LIMIT_BYTES - len(JOB) + surplus_bytes))
    chunked = {"wsgi.input": stream, "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    assert client.post("/", environ_overrides=chunked).status_code == status
    assert stream.tell() <= LIMIT_BYTES + 1


def test_a_body_shorter_than_its_length_is_400(client: FlaskClient, path: Path) -> None:
    """A cut connection is not taken for a whole document."""
    response = client.post("/", data=JOB, environ_overrides={"CONTENT_LENGTH": str(len(JOB) + 1)})
    assert problem(response) == (400, "malformed-body")
    assert path.read_bytes() == b""


def test_a_body_that_cannot_be_read_is_400(client: FlaskClient) -> None:
    """A server's own exception is no fault of the receiver."""

    class Broken(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise RuntimeError("broken chunk")

    response = client.post("/", environ_overrides={"wsgi.input": Broken(), "CONTENT_LENGTH": "10"})
    assert problem(response) == (400, "malformed-body")


def test_a_compressed_body_is_415(client: FlaskClient) -> None:
    """With the one coding that is accepted; `identity` is that one."""
    response = client.post("/", data=JOB, headers={"Content-Encoding": "gzip"})
    assert problem(response) == (415, "unsupported-media-type")
    assert response.headers["Accept-Encoding"] == "identity"
    assert client.post("/", data=JOB, headers={"Content-Encoding": "Identity"}).status_code == 200


def test_a_stream_without_an_end_or_a_length_is_not_read(client: FlaskClient) -> None:
    """Reading it could wait for ever; it counts as an empty body."""
    stream = BytesIO(JOB)
    assert problem(client.post("/", environ_overrides={"wsgi.input": stream})) == (400, "not-a-job")
    assert stream.tell() == 0
