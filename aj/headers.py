"""The grammar of request headers that are ours to read. Text in, values out; knows no framework."""

from __future__ import annotations

import re
from typing import Any

import http_sf

from aj.errors import MalformedKey

KEY_MAX_LENGTH = 255
# One preference: name, perhaps a value, perhaps parameters. Source: RFC 7240 section 2; RFC 9110 section 5.6.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_WORD = rf'(?:{_TOKEN}|"(?:[^"\\]|\\.)*")'
_PREFERENCE = re.compile(
    rf"[ \t]*(?P<name>{_TOKEN})[ \t]*(?:=[ \t]*(?P<value>{_WORD})?)?[ \t]*"
    rf"(?:;[ \t]*(?:{_TOKEN}[ \t]*(?:=[ \t]*{_WORD}?)?)?[ \t]*)*(?:,|$)|[ \t]*(?:,|$)"
)
_BARE_KEY = re.compile(r"[\x21\x23-\x2b\x2d-\x7e]{1,255}")  # visible ASCII but the quote and the comma
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
TRACE_HEADER = "traceparent"
TRACE_MAX_LENGTH = 512
# Version, trace-id, parent-id, flags; what a later version adds stands after another dash.
_TRACE = re.compile(
    r"(?P<version>(?!ff)[0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    r"(?P<more>-[\x21-\x2b\x2d-\x7e]*)?"
)


def idempotency_key(value: str | None) -> str | None:
    """The key that an `Idempotency-Key` header names, or None where there is no header.

    `"abc"` and bare `abc` are one key. A comma in the bare form is refused, since servers join a repeated
    header with one.

    Raises: MalformedKey: empty, not visible ASCII, over 255 characters, repeated, an unbalanced quote.
    Source: draft-ietf-httpapi-idempotency-key-header-07 section 2.1; RFC 9651 section 3.3.3.
    """
    if value is None:
        return None
    text = value.strip(" \t")
    if not text.startswith('"'):
        if _BARE_KEY.fullmatch(text):
            return text
        raise _malformed()
    try:
        parsed: Any = http_sf.parse(text.encode("ascii"), tltype="item")
    except (http_sf.StructuredFieldError, UnicodeEncodeError):
        raise _malformed() from None
    key, parameters = parsed
    if parameters or not isinstance(key, str) or not _KEY.fullmatch(key):
        raise _malformed()
    return key


def preferred_wait_s(value: str | None, most_s: int) -> int | None:
    """The seconds of `wait` in a `Prefer` header, at most `most_s`, or None where nobody asks to wait.

    A preference is a wish: what is malformed is passed over, and the first of several of one name counts.
    Source: RFC 7240 sections 2 and 4.3.
    """
    at = 0
    while value is not None and at < len(value):
        match = _PREFERENCE.match(value, at)
        if match is None:
            return None
        if (match["name"] or "").lower() == "wait":
            digits = (match["value"] or "").strip('"')
            if not re.fullmatch("[0-9]+", digits):
                return None
            return most_s if len(digits) > 9 else min(int(digits), most_s)
        at = max(match.end(), at + 1)
    return None


def traceparent(value: str | None) -> str | None:
    """The `traceparent` header as it came, or None where there is none that can be read.

    Nobody's submission fails for it: what is malformed is passed over, as are two headers, which servers join with
    a comma. Of a version that is not known yet only the fields that all versions share are judged.

    Source: W3C Trace Context (Level 1 and 2) sections 3.2 and 4.
    """
    text = (value or "").strip(" \t")
    match = _TRACE.fullmatch(text) if len(text) <= TRACE_MAX_LENGTH else None
    return text if match and not (match["version"] == "00" and match["more"]) else None


def _malformed() -> MalformedKey:
    return MalformedKey(
        f'Send one Idempotency-Key of 1 to {KEY_MAX_LENGTH} visible ASCII characters, as "abc" or bare abc.'
    )
