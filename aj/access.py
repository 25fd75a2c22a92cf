"""Who is calling: API keys in, names of callers out. Holds hashes only, and knows no framework.

A caller is a name in the configuration; nothing of one caller may be read, changed or guessed by another.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence

from aj.errors import Unauthorized
from aj.settings import ApiKey

_BEARER = re.compile(r"bearer +(?P<key>[A-Za-z0-9._~+/=-]{1,500})", re.IGNORECASE)


def caller_of(authorization: str | None, keys: Sequence[ApiKey]) -> str:
    """The name of the caller that an `Authorization` header shows; empty where no keys are configured.

    Every hash is compared, in constant time, so that the time taken says nothing about which one matched.

    Raises: Unauthorized: no key, or one that is not known. Source: RFC 6750 section 2.1.
    """
    if not keys:
        return ""
    match = _BEARER.fullmatch((authorization or "").strip())
    if match is None:
        raise Unauthorized("Send an API key: Authorization: Bearer <key>.")
    known = known_key(match["key"], keys)
    if known is None:
        raise Unauthorized("The API key is not known.")
    return known.name


def known_key(text: str, keys: Sequence[ApiKey]) -> ApiKey | None:
    """The one of `keys` that this is, if it is one."""
    shown = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    found = [each for each in keys if hmac.compare_digest(each.sha256, shown)]
    return found[0] if found else None


def new_key() -> tuple[str, str]:
    """A fresh API key, and the hash of it that the configuration holds."""
    key = f"aj_{secrets.token_urlsafe(32)}"
    return key, hashlib.sha256(key.encode("ascii")).hexdigest()
