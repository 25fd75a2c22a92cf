"""A server that does as a test says, byte by byte: it answers wrongly, half, late, drop by drop or not at all."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aj.clock import monotonic_s

Reply = bytes | Callable[["socket.socket"], None]
REASONS = {200: "OK", 202: "ACCEPTED", 304: "NOT MODIFIED"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came, its header names in lower case, and when."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float


@dataclass(slots=True)
class Scripted:
    """`replies` are given in order, one to each connection, and the last one again and again; over TLS where it has."""

    url: str
    replies: list[Reply]
    tls: ssl.SSLContext | None = None
    asked: list[Asked] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        given = 0
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            reply = self.replies[min(given, len(self.replies) - 1)]
            given += 1
            threading.Thread(target=self._answer, args=(client, reply), daemon=True).start()

    def _answer(self, client: socket.socket, reply: Reply) -> None:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            stack.callback(client.close)
            if self.tls is not None:
                client = stack.enter_context(self.tls.wrap_socket(client, server_side=True))
            asked = _request(client)
            if asked is None:
                return
            self.asked.append(asked)
            if isinstance(reply, bytes):
                client.sendall(reply)
            else:
                reply(client)


def answer(status: int, document: Any = None, **fields: str) -> bytes:
    """A whole answer; `document` is its JSON, or bytes as they are. An underscore in the name of a field is a dash."""
    body = document if isinstance(document, bytes) else b"" if document is None else json.dumps(document).encode()
    kind = "application/json" if status < 400 else "application/problem+json"
    headers = {"Content-Type": kind, "Connection": "close", **{n.replace("_", "-"): v for n, v in fields.items()}}
    if status != 304:
        headers = {"Content-Length": str(len(body)), **headers}
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'NAME')}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def dripping(data: bytes, every_s: float = 0.05) -> Callable[[socket.socket], None]:
    """Sends `data` byte by byte, with a pause after each."""

    def reply(client: socket.socket) -> None:
        for at in range(len(data)):
            client.sendall(data[at : at + 1])
            threading.Event().wait(every_s)

    return reply


def hanging(client: socket.socket) -> None:
    """Says nothing until the client hangs up."""
    client.recv(1)


@contextmanager
def scripted(*replies: Reply, tls: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    """A server with this script on a loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        scheme = "http" if tls is None else "https"
        server = Scripted(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", list(replies), tls)
        threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def _request(client: socket.socket) -> Asked | None:
    """One whole request, or None where the client hung up before."""
    got = b""
    while b"\r\n\r\n" not in got:
        more = client.recv(2**16)
        if not more:
            return None
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += client.recv(2**16)
    return Asked(method, path, headers, body, monotonic_s())
