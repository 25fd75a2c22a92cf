"""How the pages write times, lengths, sizes and JSON for people. Pure functions.

`ago` and `for_` are written again in `static/dashboard.js`, which keeps them true while a page stands.
"""

from __future__ import annotations

import json
import re
from typing import Any

from aj import clock

# What is longer is cut for the page; its whole is behind a link or in the API.
MOST_SHOWN = 16_000
WIDTH = 76
# Control characters but the ends of a line and the tab, and marks that turn the direction of what is read.
_TURNING = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Those beyond ASCII, and what is not seen or ends a line too.
_UNSEEN = re.compile("[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
UNITS = ((60, 1, "s"), (3600, 60, "min"), (172_800, 3600, "h"))


def length(passed_ms: int) -> str:
    """A length in its largest whole unit: `12 s`, `3 min`, `5 h`, `3 d`."""
    seconds = max(0, passed_ms) // 1000
    for below, size, unit in UNITS:
        if seconds < below:
            return f"{seconds // size} {unit}"
    return f"{seconds // 86_400} d"


def ago(at_ms: int, now_ms: int) -> str:
    """A time as seen from now: `12 s ago`, `now`, `in 3 min`."""
    if abs(now_ms - at_ms) < 1000:
        return "now"
    return f"{length(now_ms - at_ms)} ago" if at_ms < now_ms else f"in {length(at_ms - now_ms)}"


def took(passed_ms: float) -> str:
    """A length that is over, to three digits or so: `6 ms`, `2.34 s`, `3 min 12 s`."""
    if passed_ms < 1000:
        return f"{passed_ms:.0f} ms" if passed_ms >= 1 else "under 1 ms"
    seconds = passed_ms / 1000
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"


def count(number: int) -> str:
    return f"{number:,}"


def full(at_ms: int) -> str:
    """A time in full: `2026-11-30 14:03:12.123 UTC`."""
    return clock.rfc3339(at_ms).replace("T", " ").replace("Z", " UTC")


def time_of_day(at_ms: int) -> str:
    return clock.rfc3339(at_ms)[11:16]


def size(bytes_: int) -> str:
    return (
        f"{bytes_} bytes"
        if bytes_ < 2000
        else f"{bytes_ / 1000:.1f} kB"
        if bytes_ < 1_000_000
        else f"{bytes_ / 1e6:.1f} MB"
    )


def visible(json_text: str) -> str:
    """JSON in which no character turns the direction of what is read, hides, or ends a line: such ones are escaped."""
    return _UNSEEN.sub(_escaped, json_text)


def honest(shown: Any) -> Any:
    """Text of anybody as it may stand on a page, where it must not turn around what is read; other values as they are.

    Source: Unicode Technical Report 36, section 2.5 (bidirectional text spoofing).
    """
    return _TURNING.sub(_escaped, shown) if type(shown) is str else shown


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def parsed(document: bytes | None) -> dict[str, Any]:
    """The members of a JSON object; none where there is none."""
    try:
        value = json.loads(document or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def readable_json(document: bytes) -> tuple[str, bool]:
    """JSON with line breaks, and whether it was cut. What is long is not read, and stays as it is."""
    if len(document) > MOST_SHOWN:
        return visible(document[:MOST_SHOWN].decode("utf-8", "ignore")), True
    try:
        text = _laid_out(json.loads(document), "")
    except (ValueError, RecursionError):
        text = document.decode("utf-8", "replace")
    text = visible(text)
    return text[:MOST_SHOWN], len(text) > MOST_SHOWN


def _laid_out(value: Any, margin: str) -> str:
    """What fits a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(margin) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inside = margin + "  "
    if isinstance(value, list):
        lines = [inside + _laid_out(each, inside) for each in value]
    else:
        lines = [
            f"{inside}{json.dumps(name, ensure_ascii=False)}: {_laid_out(each, inside)}" for name, each in value.items()
        ]
    left, right = "[]" if isinstance(value, list) else "{}"
    return f"{left}\n" + ",\n".join(lines) + f"\n{margin}{right}"


def without_query(url: str) -> str:
    """An address that may be shown: its query may hold a secret of the receiver's."""
    return re.sub(r"\?.*", "?…", url, flags=re.DOTALL)
