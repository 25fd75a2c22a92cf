"""How the reference server reads what comes: bodies and keys, each with its refusal, and switches for kindness."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from tests.check.engine import TASKS, Record

LIMIT_BYTES = 65536
_PRIVATE = re.compile(r"//(169\.254|0x|2130706433|\[)")


@dataclass(frozen=True)
class Refused(Exception):
    """An answer that says no."""

    status: int
    detail: str
    fields: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


def members(body: bytes, faults: frozenset[str]) -> dict[str, Any]:
    """The JSON object in `body`. Raises: Refused."""
    if (not body and "empty bodies taken" in faults) or (body[:2] == b"n=" and "forms taken" in faults):
        return {"n": 5}
    try:
        text = body.decode("utf-16" if "UTF-16 taken" in faults and body[:2] == b"\xff\xfe" else "utf-8")
        _refuse_depth(text, faults)
        if "trailing bytes taken" in faults:
            value, _ = _reader(faults).raw_decode(text.lstrip())
        else:
            value = _reader(faults).decode(text)
        if "half a surrogate pair taken" not in faults:
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError as error:
        raise Refused(400, str(error)) from None
    if not isinstance(value, dict):
        raise Refused(500 if "500 for a list" in faults else 422, "an object is wanted")
    return value


def _refuse_depth(text: str, faults: frozenset[str]) -> None:
    depth = 0
    for letter in text:  # no text of the check has brackets in a string
        depth += (letter in "[{") - (letter in "]}")
        if depth > 64:
            raise Refused(500 if "500 for deep nesting" in faults else 400, "nested too deeply")


def _reader(faults: frozenset[str]) -> json.JSONDecoder:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs) and "duplicate names taken" not in faults:
            raise ValueError("a name stands twice")
        return dict(pairs)

    def number(text: str) -> float:
        if math.isinf(float(text)):
            raise ValueError("too large")
        return float(text)

    def constant(name: str) -> int:
        if "NaN taken" in faults:
            return 5
        raise ValueError(f"{name} is no JSON")

    return json.JSONDecoder(object_pairs_hook=unique, parse_float=number, parse_constant=constant)


def checked(values: dict[str, Any], faults: frozenset[str]) -> Record:
    """The job that a submission wants. Raises: Refused."""
    values = dict(values)
    metadata = values.pop("metadata", None)
    _judge_metadata(metadata, faults)
    task, callback = values.pop("task", "square"), values.pop("callback_url", None)
    if task not in TASKS and "unknown tasks taken" in faults:
        task = "square"
    if task not in TASKS:
        raise _wrong("task", "no such task")
    if callback is not None and "any callback taken" not in faults:
        _judge(callback)
    wanted = TASKS[task]
    for name in list(values):
        if name not in wanted:
            if "unknown members taken" not in faults:
                raise _wrong(name, "not known", faults)
            del values[name]
    for name, kind in wanted.items():
        value = values.get(name)
        if kind is int and "texts taken for numbers" in faults and isinstance(value, str | float | bool):
            values[name] = int(value)
        elif type(value) not in ({int} if kind is int else {int, float}):
            raise _wrong(name, "of a wrong type", faults)
    return Record(task, values, callback, metadata=None if "metadata dropped" in faults else metadata)


def _wrong(name: str, why: str, faults: frozenset[str] = frozenset()) -> Refused:
    pointer = f"/{name}" if "pointers without #" in faults else f"#/{name}"
    errors = [] if "no pointers" in faults else [{"pointer": pointer, "detail": why}]
    return Refused(422, f"{name} is {why}", {}, {"errors": errors})


def _judge_metadata(metadata: Any, faults: frozenset[str]) -> None:
    sound = metadata is None or (isinstance(metadata, dict) and len(json.dumps(metadata)) <= 4096)
    if not sound and "any metadata taken" not in faults:
        raise _wrong("metadata", "of a wrong type, or too large", faults)


def _judge(callback: Any) -> None:
    usable = isinstance(callback, str) and re.fullmatch(r"https?://[^/@#]+(/[^#]*)?", callback)
    if not usable or _PRIVATE.search(callback):
        raise _wrong("callback_url", "not to be called")


def key(values: list[str], faults: frozenset[str]) -> str | None:
    """The idempotency key of a request, or None where it has none. Raises: Refused."""
    if not values:
        return None
    if len(values) > 1 and "two keys taken" in faults:
        values = values[:1]
    text = ", ".join(values).encode("latin-1").decode("utf-8", "replace").strip()
    quoted = re.fullmatch(r'"([\x20-\x21\x23-\x5b\x5d-\x7e]{1,255})"', text)
    bare = re.fullmatch(r"[\x21\x23-\x2b\x2d-\x7e]{1,255}", text)
    if quoted and "quotation marks belong to the key" not in faults:
        return quoted[1]
    if quoted or bare or ("malformed keys taken" in faults and len(values) == 1):
        return text
    raise Refused(400, "a malformed key")
