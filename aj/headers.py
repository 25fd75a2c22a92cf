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


def _malformed() -> MalformedKey:
    return MalformedKey(
        f'Send one Idempotency-Key of 1 to {KEY_MAX_LENGTH} visible ASCII characters, as "abc" or bare abc.'
    )
