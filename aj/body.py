"""A request body is read and becomes members, or is refused.

Python's own reader is too kind for a contract: it takes NaN, numbers that overflow, two members of one name,
and it can be brought down by nesting. Knows no framework.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from aj.errors import BodyTooLarge, Invalid, Malformed

DEEPEST_NESTING = 64
MOST_DIGITS = 4300  # Python's own limit, which it counts without the sign
# Possessive, and the closing quote optional: a string without an end is scanned once and not from each of its quotes.
_STRINGS_AND_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)


def read_body(environ: Mapping[str, Any], most_bytes: int) -> bytes:
    """The request body of a WSGI `environ`, whole or refused.

    Read here and not by the framework, which cuts a chunked body at its limit and takes a body that ended
    early for a whole one.

    Raises: BodyTooLarge: more than `most_bytes`. Malformed: fewer bytes than Content-Length says, or it says no number.
    Source: PEP 3333; `wsgi.input_terminated` as servers set it where the stream ends by itself.
    """
    too_large = BodyTooLarge(f"The body is over {most_bytes} bytes, which is the limit.")
    length = environ.get("CONTENT_LENGTH") or None
    if length is None and not environ.get("wsgi.input_terminated"):
        return b""
    if length is not None and not re.fullmatch(r"[0-9]+", length):
        raise Malformed(f"The Content-Length is {length[:40]!r}; it must be a whole number of bytes.")
    if length is not None and (len(length) > 18 or int(length) > most_bytes):
        raise too_large
    wanted = most_bytes + 1 if length is None else int(length)
    chunks = bytearray()
    while len(chunks) < wanted:
        try:
            chunk = environ["wsgi.input"].read(wanted - len(chunks))
        except Exception as error:  # each server has its own classes for chunks that are broken or cut off
            raise Malformed("The body breaks off, or is not in the chunks that its headers announce.") from error
        if not chunk:
            break
        chunks += chunk
    if length is not None and len(chunks) < wanted:
        raise Malformed(f"The body ended after {len(chunks)} bytes; Content-Length says {wanted}.")
    if len(chunks) > most_bytes:
        raise too_large
    return bytes(chunks)


def parse_object(body: bytes) -> dict[str, Any]:
    """The members of the JSON object in `body`.

    Raises: Malformed: not JSON in UTF-8, or JSON that two readers may understand differently.
    Invalid: JSON, but not an object.
    Source: RFC 8259; RFC 7493 (I-JSON) sections 2.1 to 2.3.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"The body is not UTF-8: byte {error.start} cannot be read.") from None
    if not text.strip(" \t\r\n"):
        raise Malformed('The body is empty; send a JSON object, such as {"n": 5}.')
    _refuse_deep_nesting(text)
    try:
        value = _READER.decode(text)
        if "\\u" in text:  # the only way in which half a pair gets into what was UTF-8
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Malformed("The body holds half of a surrogate pair, which is no character.") from None
    except ValueError as error:
        raise Malformed(f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise Invalid('The body must be a JSON object, such as {"n": 5}.')
    return value


def _refuse_deep_nesting(text: str) -> None:
    if text.count("[") + text.count("{") <= DEEPEST_NESTING:
        return
    depth = 0
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > DEEPEST_NESTING:
            raise Malformed(f"The body is nested deeper than {DEEPEST_NESTING} levels.")


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"the member {name[:100]!r} stands twice")
        members[name] = value
    return members


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"a number has {len(text)} digits; the limit is {MOST_DIGITS}")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


_READER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_whole, parse_constant=_no_constant
)
