"""What a receipt is, and its one line of logfmt: `format_line` writes it, `parse_line` reads it. Pure.

    2026-11-29T15:00:00.123Z job_id=… status=succeeded webhook_id=… signature=valid duplicate=false

The fields stand in this order, one space apart. A value stands bare when it is one or more visible ASCII
characters without `"`, `=` and `\\`. Any other value is written as a JSON string in ASCII, where every control
character is escaped too, so that no value can start a new line, end itself early or look like a field.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

Signature = Literal["valid", "none"]

VALUE_MAX_CHARS = 255
# Two values of 255 characters, each at most two escapes of six bytes, and about 110 bytes around them.
LINE_MAX_BYTES = 2 * (VALUE_MAX_CHARS * 12 + 2) + 128

_BARE = r"[!#-<>-\[\]-~]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\["\\bfnrt]|\\u[0-9a-f]{4})*"'
_VALUE = f"{_BARE}|{_QUOTED}"
_LINE = re.compile(
    r"(?P<received_at>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)"
    rf" job_id=(?P<job_id>{_VALUE}) status=(?P<status>{_VALUE}) webhook_id=(?P<webhook_id>{_VALUE})"
    r" signature=(?P<signature>valid|none) duplicate=(?P<duplicate>true|false)"
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """One webhook that was accepted.

    `received_at` is RFC 3339 in UTC with milliseconds. `webhook_id` is empty where the sender gave none;
    such a receipt is never a duplicate. Values hold Unicode without lone surrogates.
    """

    received_at: str
    job_id: str
    status: str
    webhook_id: str
    signature: Signature
    duplicate: bool


def format_line(receipt: Receipt) -> bytes:
    """The receipt's line, its newline included."""
    text = (
        f"{receipt.received_at} job_id={_value(receipt.job_id)} status={_value(receipt.status)}"
        f" webhook_id={_value(receipt.webhook_id)} signature={receipt.signature}"
        f" duplicate={'true' if receipt.duplicate else 'false'}\n"
    )
    return text.encode("ascii")


def parse_line(line: bytes) -> Receipt | None:
    """The receipt that a line holds, with or without its newline, or None where it is not such a line.

    A log may hold what others wrote and what a crash cut short; a reader skips these lines.
    """
    match = _LINE.fullmatch(line.removesuffix(b"\n").decode("ascii", "replace"))
    if match is None:
        return None
    return Receipt(
        received_at=match["received_at"],
        job_id=_unquoted(match["job_id"]),
        status=_unquoted(match["status"]),
        webhook_id=_unquoted(match["webhook_id"]),
        signature="valid" if match["signature"] == "valid" else "none",
        duplicate=match["duplicate"] == "true",
    )


def _value(text: str) -> str:
    if re.fullmatch(_BARE, text):
        return text
    return json.dumps(text).replace("\x7f", "\\u007f")  # DEL is the one control character that JSON leaves alone


def _unquoted(value: str) -> str:
    return str(json.loads(value)) if value.startswith('"') else value
