"""A small API of another shape, as docs/check.md describes it: the job stands in Operation-Location only."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.check import strict

RUNS_S = 0.5


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    began: dict[str, float]

    def do_POST(self) -> None:
        try:
            body = self._body()
            if self.path != "/v1/reports":
                raise strict.Refused(404, "nothing is here")
            strict.members(body, frozenset())
        except strict.Refused as refused:
            return self._problem(refused)
        job_id = str(uuid.uuid4())
        self.began[job_id] = time.monotonic()
        return self._send(202, {"Operation-Location": f"/v1/operations/{job_id}", "Retry-After": "1"}, {})

    def do_GET(self) -> None:
        job_id = self.path.removeprefix("/v1/operations/")
        if job_id not in self.began:
            return self._problem(strict.Refused(404, "nothing is here"))
        if time.monotonic() - self.began[job_id] < RUNS_S:
            return self._send(200, {"Retry-After": "1"}, {"operation": {"state": "Running"}})
        return self._send(200, {}, {"operation": {"state": "Succeeded", "report": {"total": 5}}})

    def do_PATCH(self) -> None:
        self._problem(strict.Refused(405, "GET and POST only"))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size)
            if len(body) < size:
                raise strict.Refused(400, "cut off")
            return body
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _problem(self, refused: strict.Refused) -> None:
        problem = {"type": "about:blank", "title": "No", "status": refused.status, "detail": refused.detail}
        self._send(refused.status, {"Content-Type": "application/problem+json"}, problem)

    def _send(self, status: int, fields: dict[str, str], document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        length = {"Content-Length": str(len(body)), "Connection": "close"}
        for name, value in {"Content-Type": "application/json", **fields, **length}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def reports() -> Iterator[str]:
    """Its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"began": {}}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
