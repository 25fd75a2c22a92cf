"""A first submission to try: values that fit a task's parameters, made from its JSON Schema. Values in, values out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from aj.body import parse_object
from aj.registry import Registry, Task

DEEPEST, LONGEST = 8, 1000
Schema = Mapping[str, Any]
TEXT = "text"
OF_FORMAT = {
    "date": "2026-11-30",
    "date-time": "2026-11-30T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT5M",
    "uuid": "018f2b5e-0000-7000-8000-000000000000",
    **{f"uuid{version}": f"018f2b5e-0000-{version}000-8000-000000000000" for version in (1, 3, 4, 5, 6, 7, 8)},
    "uri": "https://example.com/",
    "email": "someone@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}


def first_submission(registry: Registry, most_bytes: int) -> str | None:
    """Of the default task, or of the first one whose parameters the sample fits; None where it fits none: not every
    rule stands in a schema, a pattern can be met by no sample, and an API that refuses the first thing that it is asked
    looks broken."""
    bodies = (_body(each, registry.default, most_bytes) for each in registry)
    return next((each for each in bodies if each is not None), None)


def _body(task: Task, default: Task, most_bytes: int) -> str | None:
    """A body that submits the task; None where the API would refuse it."""
    try:
        parameters = _parameters(task)
        body = json.dumps(parameters if task is default else {"task": task.name, **parameters}, ensure_ascii=False)
        is_short = len(body.encode()) <= most_bytes
        task.validate({name: value for name, value in parse_object(body.encode()).items() if name in parameters})
    except Exception:  # a schema may be odd, and a validator of the task's author may raise whatever it likes
        return None
    return body if is_short else None


def sample(schema: Schema, definitions: Schema, depth: int = 0) -> Any:
    """A value of this schema: what its author has named, else a plain one that keeps the limits."""
    if depth > DEEPEST:  # a definition may refer to itself
        return None
    if "$ref" in schema:
        return sample(definitions[schema["$ref"].rpartition("/")[2]], definitions, depth + 1)
    named = [schema[name] for name in ("default", "const") if name in schema]
    named += [*schema.get("examples", ()), *schema.get("enum", ())]
    if named:
        return named[0]
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return sample(schema[name][0], definitions, depth + 1)
    return _plain(schema, definitions, depth)


def _plain(schema: Schema, definitions: Schema, depth: int) -> Any:
    match schema.get("type"):
        case "object":
            members, needed = schema.get("properties", {}), schema.get("required", ())
            return {name: sample(members[name], definitions, depth + 1) for name in needed}
        case "array":
            return _items(schema, definitions, depth)
        case "string":
            return _text(schema)
        case "integer" | "number" as kind:
            return _number(schema, 5 if kind == "integer" else 0.5)
        case "null":
            return None
    return True


def _items(schema: Schema, definitions: Schema, depth: int) -> list[Any]:
    fixed = schema.get("prefixItems", ())
    rest = min(LONGEST, schema.get("minItems", 0)) - len(fixed)
    return [sample(each, definitions, depth + 1) for each in (*fixed, *[schema.get("items", {})] * rest)]


def _text(schema: Schema) -> str:
    if schema.get("format") in OF_FORMAT:
        return OF_FORMAT[schema["format"]]
    least, most = min(LONGEST, int(schema.get("minLength", 0))), int(schema.get("maxLength", LONGEST))
    return TEXT[:most] + "t" * (least - len(TEXT))


def _number(schema: Schema, first: float) -> float:
    """The first of some near the limits that keeps them."""
    limits = [schema[name] for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if name in schema]
    step = schema.get("multipleOf", 1)
    tries = [first, 0, step, *limits]
    tries += [turn(limit / step) * step for limit in limits for turn in (math.floor, math.ceil)]
    tries += [limit + step * way for limit in limits for way in (1, -1)]
    tries += [sum(limits) / len(limits)] if isinstance(first, float) and limits else []
    return next((each for each in tries if _keeps_limits(each, schema)), first)


def _keeps_limits(number: float, schema: Schema) -> bool:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above, below = schema.get("exclusiveMinimum", -math.inf), schema.get("exclusiveMaximum", math.inf)
    return bool(
        least <= number <= most and above < number < below and number % schema.get("multipleOf", number or 1) == 0
    )


def _parameters(task: Task) -> dict[str, Any]:
    schema = task.schema
    definitions = schema.get("$defs", {})
    return {name: sample(schema["properties"][name], definitions) for name in schema.get("required", ())}
