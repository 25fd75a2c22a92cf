"""What is typed after `aj submit`, made into the members of a JSON body.

A value is JSON where it reads as JSON, else the text as it stands. JSON is read strictly, as the API reads it:
no `NaN`, no number that overflows, no name twice. The files that options name are read here too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO
from urllib.parse import quote

import click

_TASK = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class Input(click.File):
    """A file to be read whole, or standard input for `-`, which may be closed."""

    name = "filename"

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except RuntimeError:  # so click says that there is none
            self.fail("standard input is closed", param, ctx)


def read(file: BinaryIO, most: int = -1) -> bytes:
    """What a file holds, its first `most` bytes where that is not negative. Raises: click.UsageError."""
    try:
        return file.read(most)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file.name!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def members(pairs: Iterable[str], texts: Iterable[str] = ()) -> dict[str, Any]:
    """The object that `NAME=VALUE` pairs describe; the values of `texts` are never read as JSON.

    Raises: click.UsageError: a pair has no name or no `=`, is not UTF-8, or names what another one names.
    """
    made: dict[str, Any] = {}
    for is_text, group in ((False, pairs), (True, texts)):
        for pair in group:
            name, sign, text = pair.partition("=")
            if not sign or not name:
                hint = f"; if it is a task, write --task {pair}" if _TASK.fullmatch(pair) else ""
                raise click.UsageError(f"{pair!r} is no NAME=VALUE{hint}")
            if not _is_utf8(pair):
                raise click.UsageError(f"{name!r}: the value is not UTF-8")
            if name in made:
                raise click.UsageError(f"{name!r} is given twice")
            made[name] = text if is_text else value_of(text)
    return made


def mistaken(made: Mapping[str, Any], pairs: Iterable[str], errors: Iterable[Mapping[str, Any]]) -> list[str]:
    """Those of `pairs` whose values were read as JSON, and of which `errors` of the API say that text is wanted."""
    wanted = [str(each.get("pointer")) for each in errors if "string" in str(each.get("detail"))]
    found = []
    for pair in pairs:
        name = pair.partition("=")[0]
        pointer, value = "#/" + quote(name.replace("~", "~0").replace("/", "~1")), made.get(name)
        inner = () if isinstance(value, list | dict) else (pointer + "/",)  # a type of several says which it tried
        if not isinstance(value, str) and any(each == pointer or each.startswith(inner) for each in wanted):
            found.append(pair)
    return found


def value_of(text: str) -> Any:
    """The value that `text` is in JSON, or `text` where it is no JSON."""
    try:
        return _strict(text)
    except (ValueError, RecursionError):
        return text


def body_of(data: bytes) -> dict[str, Any]:
    """The JSON object that a file holds.

    Raises: click.UsageError: it holds something else.
    """
    try:
        value = _strict(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise click.UsageError('the body is JSON, but no object such as {"n": 5}')
    return value


def _strict(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_without_repeats)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a member's name stands twice")
    return made


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
