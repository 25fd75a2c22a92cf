"""The HTTP side of the reference server: requests in, answers out, with switches for what can be wrong with those."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.check import strict
from tests.check.reference import Answer, Reference
from tests.check.strict import Refused

API_KEY = "reference-server-key"
SMALL_BYTES = 1000
TITLES = {400: "Bad", 401: "Who", 404: "Unknown", 405: "Not so", 409: "Not now", 410: "Gone", 412: "Changed"}
METHODS = {"jobs": "GET, HEAD, POST, OPTIONS", "job": "GET, HEAD, DELETE, OPTIONS", "verb": "GET, POST, OPTIONS"}


class Handler(BaseHTTPRequestHandler):
    """Requests in, answers out."""

    protocol_version = "HTTP/1.1"
    reference: Reference

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        try:
            status, fields, document = self._route(parts.path.split("/")[1:], parts.query)
        except Refused as refused:
            status, fields, document = self._refusal(refused)
        self._send(status, fields, document)

    do_GET = do_POST = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_PUT = handle_any

    def _route(self, path: list[str], query: str) -> Answer:
        ours, method = self.reference, self.command
        if path[0] in ("healthz", "readyz", "tasks", "openapi.json") and len(path) == 1:
            return ours.about(path[0], self)
        if path[0] != "jobs" or len(path) > 3:
            raise Refused(404, "nothing is here")
        if len(path) == 2 and not path[1]:
            if ours.has("a slash redirects"):
                return 308, {"Location": "/jobs"}, None
            raise Refused(404, "nothing is here")
        given = self.headers.get("Authorization") == f"Bearer {API_KEY}"
        if not given and not ours.has("no key needed"):
            raise Refused(401, "who?", {} if ours.has("401 without a challenge") else {"WWW-Authenticate": "Bearer"})
        job_id = unquote(path[1], errors="replace") if len(path) > 1 else ""
        kind = "jobs" if len(path) == 1 else "job" if len(path) == 2 else "verb"
        if method == "OPTIONS" and not ours.has("no OPTIONS"):
            return 200, {"Allow": METHODS[kind]}, None
        verbs: dict[tuple[str, str], Any] = {
            ("POST", "jobs"): lambda: ours.submit(self),
            ("GET", "jobs"): lambda: ours.list(query),
            ("GET", "job"): lambda: ours.look(job_id, self),
            ("DELETE", "job"): lambda: ours.delete(job_id, self),
            ("POST", "cancel"): lambda: ours.cancel(job_id),
            ("GET", "result"): lambda: ours.result(job_id),
            ("GET", "deliveries"): lambda: ours.deliveries(job_id),
            ("POST", "deliveries"): lambda: ours.redeliver(job_id),
        }
        wanted = (
            "GET" if method == "HEAD" and not ours.has("no HEAD") else method,
            path[2] if kind == "verb" else kind,
        )
        if wanted in verbs:
            answer: Answer = verbs[wanted]()
            return answer
        raise Refused(405, "not so", {} if ours.has("405 without Allow") else {"Allow": METHODS[kind]})

    def body(self) -> bytes:
        """The body of a submission, whole. Raises: Refused."""
        ours = self.reference
        kind = self.headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
        if "Content-Encoding" in self.headers and not ours.has("encoded bodies taken"):
            raise Refused(415, "no encodings", {"Accept": "application/json"})
        if kind != "application/json" and not ours.has("any media type taken"):
            raise Refused(415, "only JSON", {} if ours.has("415 without Accept") else {"Accept": "application/json"})
        if ";" in self.headers.get("Content-Type", "") and ours.has("parameters refused"):
            raise Refused(415, "only JSON", {"Accept": "application/json"})
        if "Content-Type" not in self.headers and ours.has("media type wanted"):
            raise Refused(415, "only JSON", {"Accept": "application/json"})
        if self.headers.get("Transfer-Encoding") == "chunked":
            if ours.has("chunks refused"):
                raise Refused(411, "a length is wanted")
            body = self._chunks()
        else:
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size)
            if len(body) < size and not ours.has("cut bodies taken"):
                raise Refused(400, "cut off")
        if len(body) > SMALL_BYTES and ours.has("small bodies only"):
            raise Refused(413, "too large")
        if len(body) > strict.LIMIT_BYTES and not ours.has("bodies of any size taken"):
            raise Refused(413, "too large")
        return body

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body[: strict.LIMIT_BYTES] if self.reference.has("chunks cut at the limit") else body

    def wait_s(self) -> int:
        name, _, value = self.headers.get("Prefer", "").partition("=")
        if self.reference.has("waits ignored"):
            return 0
        if self.reference.has("400 for an odd preference") and name and not value.isdecimal():
            raise Refused(400, "what?")
        return min(int(value), 60) if name == "wait" and value.isdecimal() else 0

    def _refusal(self, refused: Refused) -> Answer:
        document = {
            "type": "about:blank",
            "title": TITLES.get(refused.status, "No"),
            "status": 418 if self.reference.has("another status in problems") else refused.status,
            "detail": refused.detail,
            **refused.more,
        }
        kind = "application/json" if self.reference.has("problems as plain JSON") else "application/problem+json"
        return refused.status, {"Cache-Control": "no-store", "Content-Type": kind, **refused.fields}, document

    def _send(self, status: int, fields: dict[str, str], document: Any) -> None:
        empty = status in (204, 304) or (document is None and self.command == "OPTIONS")
        body = b"" if empty else json.dumps(document).encode()
        self.send_response(status)
        kind = "text/html" if self.reference.has("documents as HTML") and self.command == "GET" else "application/json"
        for name, value in {"Content-Type": kind, **fields}.items():
            is_word = name in ("Content-Type", "Cache-Control", "Preference-Applied")
            shown = value.title() if is_word and self.reference.has("words in capitals") else value
            self.send_header(name, shown)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD" or self.reference.has("HEAD with a body"):
            self.wfile.write(body)
        if status == 304 and self.reference.has("304 with a body"):
            self.wfile.write(b"{}")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def serving(*faults: str, certificate: Path | None = None) -> Iterator[str]:
    """The base URL of a reference server with these faults; over TLS where there is a file with key and certificate."""
    reference = Reference(frozenset(faults))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"reference": reference}))
    server.daemon_threads = True
    server.request_queue_size = 64
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        # The handshake is made by the thread of its connection, and not by the one that accepts them all.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
