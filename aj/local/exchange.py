"""HTTP requests that are shown as they happen: what was really sent, and what really came back.

For people who watch: lines are wrapped to the terminal's width and continued under their beginning. No colours,
so that a pipe or a file gets the same text.
"""

from __future__ import annotations

import http.client
import json
import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aj.local.output import say

WIDTH_LEAST, WIDTH_MOST = 40, 100
ANSWER_S = 30.0
SHOWN = ("Location", "Retry-After", "ETag", "Idempotent-Replayed")


def show(text: str, indent: str = "") -> None:
    """Prints one paragraph, its first line behind `indent` and its others under the first. Raises: Unheard."""
    columns = shutil.get_terminal_size((WIDTH_MOST, 24)).columns
    width = max(WIDTH_LEAST, min(columns - 1, WIDTH_MOST))
    following = " " * len(indent)
    say(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=following, break_on_hyphens=False))


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `document` is the body as JSON."""

    status: int
    headers: http.client.HTTPMessage
    document: Any

    def retry_after_s(self) -> int:
        """The pause that the server asks for, in seconds; 1 where it asks for none."""
        return int(self.headers.get("Retry-After", "1"))


@dataclass(frozen=True, slots=True)
class Speaker:
    """A client of the API at `host`:`port` that shows what it does."""

    host: str
    port: int

    def send(self, method: str, path: str, document: Mapping[str, Any] | None = None, key: str | None = None) -> Answer:
        """One request with its answer. `key` is the Idempotency-Key.

        Raises:
            OSError, http.client.HTTPException: there was no answer.
            Unheard: nobody reads what is shown.
        """
        headers = {}
        body = None
        show(f"{method} {path}", "   > ")
        if key is not None:
            headers["Idempotency-Key"] = key
            show(f"Idempotency-Key: {key}", "   > ")
        if document is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(document)
            show(body, "   > ")
        connection = http.client.HTTPConnection(self.host, self.port, timeout=ANSWER_S)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            received = response.read().decode("utf-8", "replace").strip()
        finally:
            connection.close()
        _show_answer(response, received)
        return Answer(response.status, response.headers, json.loads(received))


def _show_answer(response: http.client.HTTPResponse, received: str) -> None:
    show(f"{response.status} {response.reason}", "   < ")
    names = SHOWN if response.status < 400 else (*SHOWN, "Content-Type")
    for name in names:
        value = response.headers.get(name)
        if value is not None:
            show(f"{name}: {value}", "   < ")
    show(received, "   < ")
    say("")
