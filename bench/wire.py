"""HTTP/1.1 as the load generator and the latency client speak it: plain requests, replies with a `Content-Length`.

Small, since its cost is paid on the machine that is measured. It is no client for servers that we do not start.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
TIMEOUT_S = 30.0
END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length:"


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply; `closes` says that the server ends the connection after it."""

    status: int
    body: bytes
    closes: bool

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def request(method: str, path: str, body: str = "", *fields: str) -> bytes:
    """The bytes of one request; `fields` are further header lines."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {LOOPBACK}", *fields]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body.encode())}"]
    return "\r\n".join([*lines, "", body]).encode()


def content_length(head: bytes) -> int:
    """What a head in lower case says of the body. Raises: ValueError: nothing."""
    at = head.find(LENGTH)
    if at < 0:
        raise ValueError("no Content-Length")
    return int(head[at + len(LENGTH) :].split(b"\r\n", 1)[0])


def reply_in(data: bytes) -> Reply | None:
    """The reply that `data` is, or None while a part of it is still to come."""
    at = data.find(END)
    if at < 0:
        return None
    head = data[:at].lower()
    body = data[at + len(END) :]
    status = int(head[9:12])
    if status != 204 and len(body) < content_length(head):
        return None
    return Reply(status, body, b"\r\nconnection: close" in head)


def connect(port: int, timeout_s: float | None = TIMEOUT_S) -> socket.socket:
    """A connection to a loopback port. Without a timeout each later call is one system call less."""
    made = socket.socket()  # create_connection would ask for the name's addresses each time
    made.settimeout(timeout_s)
    made.connect((LOOPBACK, port))
    return made


class Client:
    """One caller, who asks one thing at a time and keeps its connection as long as the server does."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def ask(self, wanted: bytes) -> Reply:
        """The reply to `wanted`. Raises: OSError: there is none."""
        kept = self._socket is not None
        try:
            return self._exchange(wanted)
        except OSError:
            self.close()
            if not kept:
                raise
            return self._exchange(wanted)  # the server had ended the idle connection

    def _exchange(self, wanted: bytes) -> Reply:
        if self._socket is None:
            self._socket = connect(self._port)
        self._socket.sendall(wanted)
        data = b""
        while (reply := reply_in(data)) is None:
            piece = self._socket.recv(65_536)
            if not piece:
                raise ConnectionError("the connection ended before the reply did")
            data += piece
        if reply.closes:
            self.close()
        return reply

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
