"""Replies of the store as values, where one that cannot be read must not keep all others from being shown."""

from __future__ import annotations

from typing import Any

from aj.clock import LAST_MS
from aj.store.client import is_wrong_type


def replies_of(pipe: Any) -> list[Any]:
    """What a pipeline brings; None where a key is of another type. Raises: redis.RedisError."""
    found = pipe.execute(raise_on_error=False)
    for reply in found:
        if isinstance(reply, Exception) and not is_wrong_type(reply):
            raise reply
    return [None if isinstance(reply, Exception) else reply for reply in found]


def whole(number: bytes | float | None) -> int | None:
    """A whole number; None where there is none."""
    try:
        return None if number is None else int(number)
    except (ValueError, OverflowError):
        return None


def moment(number: bytes | float | None) -> int | None:
    """A time in ms since the epoch; None where there is none that can be written."""
    found = whole(number)
    return found if found is not None and 0 <= found <= LAST_MS else None


def text(word: bytes | None) -> str:
    """A word; empty where there is none."""
    return (word or b"").decode("utf-8", "replace")
