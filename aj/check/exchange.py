"""One request and what came of it, as values, and how they are shown to a person.

Nothing here opens a connection. What is shown is bounded, holds no API key and no control character.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

SHOWN_BODY_LENGTH = 600
SHOWN_VALUE_LENGTH = 300
_SECRET_FIELDS = ("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. `framing` says how the body's end is told: `length`, `chunked`, `none`, or `cut`,
    which promises one byte more than comes. `hides` is a text that is never shown, such as an API key."""

    method: str
    url: str
    fields: Fields = ()
    body: bytes | None = None
    framing: str = "length"
    hides: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `fields` are in the order in which they came; `rest_bytes` came although none may."""

    status: int
    reason: str
    fields: Fields
    body: bytes
    rest_bytes: int = 0

    def field(self, name: str) -> str | None:
        """The value of a header field, joined where it was repeated; None where it is absent."""
        values = [value for each, value in self.fields if each.lower() == name.lower()]
        return ", ".join(values) if values else None

    @property
    def media_type(self) -> str:
        """The media type in lower case without its parameters, or nothing."""
        return (self.field("Content-Type") or "").partition(";")[0].strip().lower()

    @property
    def document(self) -> Any:
        """The body as JSON, or None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its answer, or with the reason why there is none. `took_s` is all of its time."""

    request: Request
    answer: Answer | None
    failure: str
    took_s: float

    @property
    def status(self) -> int:
        """The status of the answer, 0 where there is none."""
        return self.answer.status if self.answer else 0

    @property
    def document(self) -> Any:
        return self.answer.document if self.answer else None

    def field(self, name: str) -> str | None:
        return self.answer.field(name) if self.answer else None

    def told(self) -> str:
        """What came of it, in a few words."""
        return f"{self.answer.status} {self.answer.reason}".strip() if self.answer else f"no answer ({self.failure})"

    def shown(self) -> list[str]:
        """Lines for a person: the request behind `>`, the answer behind `<`."""
        hides = self.request.hides
        target = re.sub(r"^[a-z]+://[^/?]*", "", self.request.url) or "/"
        lines = [f"> {self.request.method} {target}", *(f"> {line}" for line in _fields(self.request.fields, hides))]
        if self.request.body is not None:
            lines += [f"> {line}" for line in _body(self.request.body, hides)]
        if self.answer is None:
            lines.append(f"< no answer: {self.failure}")
        else:
            lines.append(f"< {self.answer.status} {self.answer.reason}".rstrip())
            lines += [f"< {line}" for line in _fields(self.answer.fields, hides)]
            lines += [f"< {line}" for line in _body(self.answer.body, hides)]
        return [escaped(without(hides, line)) for line in lines]


def without(hidden: str, text: str) -> str:
    """`text` without what is not to be seen, as it stands and as JSON spells it. Before it is cut: half is too much."""
    for each in dict.fromkeys((hidden, json.dumps(hidden)[1:-1]) if hidden else ()):
        text = text.replace(each, "***")
    return text


def escaped(text: str) -> str:
    """`text` with each control character, line ends included, as an escape that a terminal does not obey."""
    visible = text.replace("\n", "\\n").replace("\t", "\\t")
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), visible)


def _fields(fields: Fields, hides: str) -> list[str]:
    return [
        f"{name}: {'***' if name.lower() in _SECRET_FIELDS else _cut(without(hides, value))}" for name, value in fields
    ]


def _cut(value: str) -> str:
    return value if len(value) <= SHOWN_VALUE_LENGTH else f"{value[:SHOWN_VALUE_LENGTH]}… ({len(value)} characters)"


def _body(body: bytes, hides: str) -> list[str]:
    if not body:
        return []
    # All of it, since what is hidden may stand across any place at which it were cut; latin-1 keeps each byte.
    seen = without(hides, body.decode("latin-1")).encode("latin-1") if hides else body
    text = seen[: 4 * SHOWN_BODY_LENGTH].decode("utf-8", "backslashreplace")
    more = f"… ({len(body)} bytes)" if len(text) > SHOWN_BODY_LENGTH else ""
    return ["", text[:SHOWN_BODY_LENGTH] + more]
