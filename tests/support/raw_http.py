"""Requests byte by byte over a socket, for what no well-behaved client would send."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any

REPLY_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as it came: the status, headers with names in lower case, the body."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask_raw(port: int, sent: bytes, *, then_half_close: bool = False) -> RawAnswer:
    """Sends `sent` to a loopback port and reads one answer; `then_half_close` ends our side of the stream first."""
    with socket.create_connection(("127.0.0.1", port), timeout=REPLY_TIMEOUT_S) as connection:
        connection.sendall(sent)
        if then_half_close:
            connection.shutdown(socket.SHUT_WR)
        answer = HTTPResponse(connection)
        answer.begin()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return RawAnswer(answer.status, headers, answer.read())


def post_of(body: bytes, *header_lines: bytes) -> bytes:
    """The bytes of a `POST /jobs`; `header_lines` say how long `body` is, since a test may want that to be a lie."""
    lines = [b"POST /jobs HTTP/1.1", b"Host: test", b"Connection: close", *header_lines, b"", body]
    return b"\r\n".join(lines)


def in_chunks(body: bytes, size: int) -> bytes:
    """`body` in the chunked transfer coding, whole. Source: RFC 9112 section 7.1."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def problem_slug(document: Any) -> str:
    """The last word of a problem's `type`."""
    kind: str = document["type"]
    return kind.rpartition(":")[2]
