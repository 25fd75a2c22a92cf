"""A receiver of webhooks for the time of a check: it remembers what came and answers as it was told beforehand.

Before it answers it lets somebody look at the job, so that it can be said what a receiver sees that fetches on receipt.
It judges nothing.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aj.check.exchange import Answer, Exchange, Request
from aj.clock import now_ms

MAX_BODY_BYTES = 2 * 1024 * 1024
READ_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt that arrived, how it was answered, and what a look at its job on receipt showed."""

    method: str
    path: str
    fields: tuple[tuple[str, str], ...]
    body: bytes
    at_ms: int
    answered: int
    look: Exchange | None

    def lowered(self) -> dict[str, str]:
        """The header fields by their names in lower case."""
        return {name.lower(): value for name, value in self.fields}

    def shown(self) -> Exchange:
        """The delivery as an exchange, in which the API asks and we answer."""
        request = Request(self.method, self.path, self.fields, self.body)
        return Exchange(request, Answer(self.answered, "(from this receiver)", (), b""), "", 0.0)


class Receiver:
    """Listens from its making until `close`. `answers` says what to answer first on which path; then it is 204."""

    def __init__(
        self, host: str, port: int, answers: Mapping[str, list[int]], look: Callable[[bytes], Exchange | None]
    ) -> None:
        self._deliveries: list[Delivery] = []
        self._changed = threading.Condition()
        self._begun: dict[str, int] = defaultdict(int)
        self._answers, self._look = answers, look
        # A handler is made for each request; what it knows of us it has from the class.
        self._server = _Server((host, port), type("Handler", (_Handler,), {"receiver": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.base_url = f"http://{host}:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def came(self, path: str) -> list[Delivery]:
        """What has been answered on this path so far, in order."""
        with self._changed:
            return [each for each in self._deliveries if each.path == path]

    def wait_for(self, path: str, count: int, within_s: float) -> list[Delivery]:
        """What came on this path, as soon as there are `count` of them, or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: sum(each.path == path for each in self._deliveries) >= count, within_s)
        return self.came(path)

    def take(self, handler: BaseHTTPRequestHandler, body: bytes) -> int:
        """Remembers a delivery and says how it is answered."""
        with self._changed:
            number = self._begun[handler.path]
            self._begun[handler.path] += 1
        plan = self._answers.get(handler.path, [])
        status = plan[number] if number < len(plan) else 204
        at_ms, fields = now_ms(), tuple(handler.headers.items())
        delivery = Delivery(handler.command, handler.path, fields, body, at_ms, status, self._look(body))
        with self._changed:
            self._deliveries.append(delivery)
            self._changed.notify_all()
        return status


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a sender that breaks off has made no attempt, and is told of nowhere else."""


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver
    timeout = READ_TIMEOUT_S

    def do_POST(self) -> None:
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "").lower()
        length = 0 if chunked else min(max(0, int(self.headers.get("Content-Length") or 0)), MAX_BODY_BYTES)
        body = self._chunks() if chunked else self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the sender has broken off")
        status = self.receiver.take(self, body)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.receiver.base_url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST

    def _chunks(self) -> bytes:
        """A body in the chunked transfer coding, up to the bound. Source: RFC 9112 section 7.1."""
        body = bytearray()
        while len(body) < MAX_BODY_BYTES and (size := int(self.rfile.readline(100).partition(b";")[0], 16)):
            body += self.rfile.read(min(size, MAX_BODY_BYTES))
            self.rfile.readline(100)
        self.rfile.readline(100)
        return bytes(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the report is all that is said."""
