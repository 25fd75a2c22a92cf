"""The receiver of the checker: it takes what senders send, and answers as it was told."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from aj.check.receiver import MAX_BODY_BYTES, Receiver
from tests.support.raw_http import ask_raw, in_chunks


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver("127.0.0.1", 0, {"/hook": [500, 307]}, lambda _: None)
    yield made
    made.close()


def _post(receiver: Receiver, *lines: bytes, body: bytes) -> tuple[int, dict[str, str]]:
    head = b"\r\n".join([b"POST /hook HTTP/1.1", b"Host: test", b"Connection: close", *lines, b"", b""])
    answer = ask_raw(urlsplit(receiver.base_url).port or 0, head + body)
    return answer.status, answer.headers


def test_it_answers_as_it_was_told_and_then_takes_all(receiver: Receiver) -> None:
    """Each path has its plan."""
    answers = [_post(receiver, b"Content-Length: 2", body=b"{}") for _ in range(4)]
    assert [status for status, _ in answers] == [500, 307, 204, 204]
    assert answers[1][1]["location"] == f"{receiver.base_url}/elsewhere"
    assert [each.answered for each in receiver.came("/hook")] == [500, 307, 204, 204]


def test_a_body_in_chunks_is_read_whole(receiver: Receiver) -> None:
    """Some senders do not know the length of what they send."""
    body = b'{"job_id": "' + b"x" * 1000 + b'"}'
    _post(receiver, b"Transfer-Encoding: chunked", body=in_chunks(body, 300))
    assert receiver.came("/hook")[0].body == body


@pytest.mark.parametrize("size", [b"-1", b"0x5", b"five", b""])
def test_a_chunk_without_a_size_is_not_read(receiver: Receiver, size: bytes) -> None:
    """-1 would be all that ever comes: the sender is hung up on, however much it goes on to send."""
    head = b"POST /hook HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", urlsplit(receiver.base_url).port or 0), timeout=10) as sender:
        sender.sendall(head + size + b"\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert sender.recv(1000) == b""
    assert receiver.came("/hook") == []


def test_a_body_in_chunks_is_read_up_to_a_bound(receiver: Receiver) -> None:
    """Also where one chunk is larger than all that is taken."""
    _post(receiver, b"Transfer-Encoding: chunked", body=b"fffffff\r\n" + b"x" * (MAX_BODY_BYTES + 1))
    assert len(receiver.came("/hook")[0].body) == MAX_BODY_BYTES


def test_what_is_hidden_is_not_shown_of_a_delivery() -> None:
    """An API may say the key of its caller again, in a webhook too."""
    made = Receiver("127.0.0.1", 0, {}, lambda _: None, "hush")
    _post(made, b"X-Said: hush", b"Content-Length: 6", body=b'"hush"')
    made.close()
    assert "hush" not in "".join(made.came("/hook")[0].shown().shown())


def test_who_breaks_off_has_sent_nothing(receiver: Receiver, capfd: pytest.CaptureFixture[str]) -> None:
    """No delivery, and no traceback on the terminal."""
    lengths = (b"Content-Length: ten\r\n\r\n", b"Content-Length: 10\r\n\r\n{")
    cut_chunk = b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"
    for said in (b"\x16\x03\x01", *(b"POST /hook HTTP/1.1\r\n" + each for each in (*lengths, cut_chunk))):
        with socket.create_connection(("127.0.0.1", urlsplit(receiver.base_url).port or 0), timeout=10) as sender:
            sender.sendall(said)
            sender.shutdown(socket.SHUT_WR)
            while sender.recv(1000):
                pass
    assert receiver.came("/hook") == []
    assert capfd.readouterr().err == ""
