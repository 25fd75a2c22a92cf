"""What schemathesis cannot know of this API: the addresses that may be called, that a key stands for one payload, and
that `5.0` is no integer, which JSON Schema has no words for.
"""

from __future__ import annotations

import contextlib
from itertools import count
from typing import Any

import schemathesis
from hypothesis import strategies

from aj.errors import MalformedKey
from aj.headers import idempotency_key

schemathesis.openapi.format("uri", strategies.just("http://127.0.0.1:9/hook"))

_numbers = count()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Gives well-formed keys, which the generator likes to make twice, a number; malformed ones stay as they are."""
    value = (case.headers or {}).get("Idempotency-Key")
    with contextlib.suppress(MalformedKey):
        if isinstance(value, str) and len(idempotency_key(value) or "") < 240:
            quote = '"' if value.startswith('"') else ""
            case.headers["Idempotency-Key"] = f"{quote}{next(_numbers)}-{value.removeprefix(quote)}"


@schemathesis.hook
def filter_body(context: Any, body: Any) -> bool:
    """Whether the body holds no integer in the clothes of a float."""
    if isinstance(body, dict | list):
        return all(filter_body(context, each) for each in (body.values() if isinstance(body, dict) else body))
    return not (isinstance(body, float) and body.is_integer())
