"""What no well-behaved client sends, byte by byte through a real gunicorn: broken bodies and hostile keys.

These tests share one API, so each takes a key and a payload of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.conftest import Deployment
from tests.support.own_store import all_that_is_stored, own_deployment
from tests.support.processes import running_api
from tests.support.raw_http import RawAnswer, ask_raw, in_chunks, post_of, problem_slug

LIMIT_BYTES = 65_536
CHUNKED = b"Transfer-Encoding: chunked"
BODY = b'{"n": 5}'
LENGTH = b"Content-Length: 8"


@dataclass(frozen=True, slots=True)
class RawApi:
    """An API behind gunicorn, and the deployment that it serves."""

    deployment: Deployment
    port: int

    def refuses(self, sent: bytes, *, then_half_close: bool = False) -> RawAnswer:
        """Sends `sent`; asserts that a problem comes back and that the store is as it was."""
        before = all_that_is_stored(self.deployment)
        answer = ask_raw(self.port, sent, then_half_close=then_half_close)
        assert answer.headers["content-type"] == "application/problem+json"
        assert all_that_is_stored(self.deployment) == before
        return answer


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawApi]:
    folder = tmp_path_factory.mktemp("raw")
    with (
        own_deployment(folder / "store") as deployment,
        running_api({**deployment.env, "AJ_WEB_WORKERS": "1"}, folder) as (_, url),
    ):
        yield RawApi(deployment, int(url.rpartition(":")[2]))


@pytest.mark.parametrize("chunk_bytes", [1000, 2**20])
def test_a_chunked_body_of_just_the_limit_is_taken_whole(api: RawApi, chunk_bytes: int) -> None:
    """Its length is not announced, yet its last byte counts."""
    body = BODY[:-1].ljust(LIMIT_BYTES - 1) + b"}"
    assert ask_raw(api.port, post_of(in_chunks(body, chunk_bytes), CHUNKED)).status == 202


@pytest.mark.parametrize("chunk_bytes", [1000, 2**20])
def test_a_chunked_body_over_the_limit_gives_413(api: RawApi, chunk_bytes: int) -> None:
    """It is never cut to a body that happens to fit: here all that is over the limit is a space."""
    answer = api.refuses(post_of(in_chunks(BODY.ljust(LIMIT_BYTES + 1), chunk_bytes), CHUNKED))
    assert answer.status == 413
    assert problem_slug(json.loads(answer.body)) == "body-too-large"


def test_a_body_cut_off_by_its_sender_gives_400(api: RawApi) -> None:
    """The sender went away after 8 of 9 bytes, and the 8 are whole JSON."""
    answer = api.refuses(post_of(BODY, b"Content-Length: 9"), then_half_close=True)
    assert answer.status == 400
    assert problem_slug(json.loads(answer.body)) == "malformed-body"


@pytest.mark.parametrize(
    "sent",
    [
        in_chunks(BODY, 3)[:6],
        in_chunks(BODY, 8)[: -len(b"0\r\n\r\n")],
        in_chunks(BODY, 8)[: -len(b"\r\n")],
        b"zz\r\n" + BODY,
        b"-8\r\n" + BODY + b"\r\n0\r\n\r\n",
        b"8\r\n" + BODY + b"XX0\r\n\r\n",
        b"",
    ],
    ids=["in a chunk", "before the last", "in the last", "no size", "negative", "no end of line", "at once"],
)
def test_broken_chunks_give_400(api: RawApi, sent: bytes) -> None:
    """A body whose end is not marked may have been cut off, however whole it looks."""
    answer = api.refuses(post_of(sent, CHUNKED), then_half_close=True)
    assert answer.status == 400
    assert problem_slug(json.loads(answer.body)) == "malformed-body"


def test_a_body_without_a_length_is_an_empty_one(api: RawApi) -> None:
    """Without Content-Length and chunks a request has no body, so what follows is not read as one."""
    assert api.refuses(post_of(BODY)).status == 400


@pytest.mark.parametrize(
    "lines",
    [
        [b"Idempotency-Key:"],
        [b"Idempotency-Key: "],
        [b'Idempotency-Key: ""'],
        [b"Idempotency-Key: sch\xc3\xbcssel"],
        [b"Idempotency-Key: \xff"],
        [b'Idempotency-Key: "\xff"'],
        [b"Idempotency-Key: twice", b"Idempotency-Key: twice"],
        [b'Idempotency-Key: "twice"', b'Idempotency-Key: "twice"'],
        [b"Idempotency-Key: one", b"Idempotency-Key: other"],
        [b"Idempotency-Key:", b"Idempotency-Key: late"],
        [b"Idempotency-Key: " + b"a" * 256],
        [b'Idempotency-Key: "' + b"a" * 256 + b'"'],
        [b'Idempotency-Key: "' + b"\\\\" * 256 + b'"'],
        [b'Idempotency-Key: "open'],
        [b'Idempotency-Key: shut"'],
        [b"Idempotency-Key: a\tb"],
    ],
    ids=lambda lines: ascii(b"|".join(lines).replace(b"Idempotency-Key:", b""))[2:30],
)
def test_a_hostile_key_gives_400(api: RawApi, lines: list[bytes]) -> None:
    """Whatever bytes arrive as the key, and on however many lines: refused with a problem, nothing kept."""
    answer = api.refuses(post_of(BODY, LENGTH, *lines))
    assert answer.status == 400
    assert problem_slug(json.loads(answer.body)) == "malformed-idempotency-key"


@pytest.mark.parametrize(
    "value",
    [b"a" * 255, b'"' + b"b" * 255 + b'"', b'"q\\"\\\\q"', b"!#$%&'()*+-./:;<=>?@[]^_`{|}~", b"\t padded \t"],
    ids=["255", "255 quoted", "escaped", "every sign", "padded"],
)
def test_an_odd_but_legal_key_is_taken(api: RawApi, value: bytes) -> None:
    """1 to 255 visible ASCII characters, bare or quoted, with space around them as HTTP allows."""
    sent = post_of(BODY, LENGTH, b"Idempotency-Key: " + value)
    first, second = ask_raw(api.port, sent), ask_raw(api.port, sent)
    assert (first.status, second.status) == (202, 202)
    assert first.body == second.body
    assert second.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize(
    "job_id", ["%00", "..%2f..%2fetc", "%2e%2e", "%ff%fe", "x" * 4000, "%e2%9c%93", "*", "%2a", "%0d%0aSet-Cookie:x"]
)
def test_a_malformed_id_gives_404(api: RawApi, job_id: str) -> None:
    """Whatever stands in the path: no such job, and no broken server."""
    lines = [f"GET /jobs/{job_id} HTTP/1.1".encode(), b"Host: test", b"Connection: close", b"", b""]
    answer = api.refuses(b"\r\n".join(lines))
    assert answer.status == 404
    assert "set-cookie" not in answer.headers
