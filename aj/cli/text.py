"""Text that may be shown on a terminal: made harmless, measured, cut. Pure functions.

What a server sends is somebody else's: a message with an escape sequence in it could move the cursor, change the
title or forge a line. Nothing of that kind passes here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

# Controls, what is invisible or turns the direction of writing, halves of surrogate pairs, ends of lines.
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PLAIN = re.compile(r"[ -~]*")
_ELLIPSIS = "…"
_AS_EMOJI = "\ufe0f"  # makes the character before it wide


def plain(text: str) -> str:
    r"""`text` on one line, what could steer a terminal written as in Python: `\x1b`, `\n`, `\u202e`."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_escaped(each) if unicodedata.category(each) in _UNSAFE else each for each in text)


def json_text(value: Any, only_ascii: bool = False) -> str:
    r"""`value` as JSON on one line; what could steer a terminal is written as `\u…`, so that it is the same value."""
    text = json.dumps(value, ensure_ascii=only_ascii)
    if _PLAIN.fullmatch(text):
        return text
    return "".join(json.dumps(each)[1:-1] if unicodedata.category(each) in _UNSAFE else each for each in text)


def columns(text: str) -> int:
    """How many columns of a terminal `text` takes, as far as that can be known."""
    return len(text) if text.isascii() else sum(_columns_of(each) for each in text)


def cut(text: str, most: int) -> str:
    """`text` in at most `most` columns; what is cut off is shown by `…`."""
    if columns(text) <= most:
        return text
    kept, used = [], 0
    for each in text:
        used += _columns_of(each)
        if used > most - 1:
            break
        kept.append(each)
    return "".join(kept) + _ELLIPSIS if most > 0 else ""


def duration(seconds: float) -> str:
    """Whole seconds as a person says them: `42 s`, `3:07`, `2:00:05`; minutes and hours from 100 s on."""
    whole = max(0, int(seconds))
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _columns_of(character: str) -> int:
    if character == _AS_EMOJI:
        return 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
