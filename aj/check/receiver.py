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
from aj.interim import chunk_size

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
    hides: str = ""  # a text that is never shown

    def lowered(self) -> dict[str, str]:
        """The header fields by their names in lower case."""
        return {name.lower(): value for name, value in self.fields}

    def shown(self) -> Exchange:
        """The delivery as an exchange, in which the API asks and we answer."""
        request = Request(self.method, self.path, self.fields, self.body, hides=self.hides)
        return Exchange(request, Answer(self.answered, "(from this receiver)", (), b""), "", 0.0)


class Receiver:
    """Listens from its making until `close`. `answers` says what to answer first on which path; then it is 204."""

    def __init__(
        self,
        host: str,
        port: int,
        answers: Mapping[str, list[int]],
        look: Callable[[bytes], Exchange | None],
        hides: str = "",
    ) -> None:
        self._deliveries: list[Delivery] = []
        self._changed = threading.Condition()
        self._begun: dict[str, int] = defaultdict(int)
        self._answers, self._look, self._hides = answers, look, hides
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
        look = self._look(body)
        delivery = Delivery(handler.command, handler.path, fields, body, at_ms, status, look, self._hides)
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
        body = self._chunks() if chunked else self._whole(length)
        status = self.receiver.take(self, body)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", f"{self.receiver.base_url}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST

    def _chunks(self) -> bytes:
        """A body in the chunked transfer coding, up to the bound. Source: RFC 9112 section 7.1.

        Raises: ConnectionError: a size is no hexadecimal number, such as -1, or the sender has broken off.
        """
        body = bytearray()
        while (size := self._chunk_size()) and len(body) < MAX_BODY_BYTES:
            wanted = min(size, MAX_BODY_BYTES - len(body))
            body += self._whole(wanted)
            if wanted < size:
                return bytes(body)
            self.rfile.readline(100)
        self.rfile.readline(100)
        return bytes(body)

    def _chunk_size(self) -> int:
        try:
            return chunk_size(self.rfile.readline(100).strip())
        except ValueError:
            raise ConnectionError("a chunk has no size") from None

    def _whole(self, size: int) -> bytes:
        piece = self.rfile.read(size)
        if len(piece) < size:
            raise ConnectionError("the sender has broken off")
        return piece

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the report is all that is said."""
