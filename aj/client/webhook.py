"""The receiving side of a webhook: whether it is genuine, and what it says. Asks nobody, and answers nobody."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

from aj import clock, signature
from aj.client.errors import ClientError


class Headers(Protocol):
    """Names, in any case, and values: a dict, or the headers of whatever framework."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify(headers: Headers, body: bytes, secrets: Iterable[str]) -> dict[str, Any]:
    """The job document that a webhook brings, with its `type` and `timestamp`.

    `body` is the raw bytes as they came. One of `secrets`, `whsec_…`, has to fit. What may come twice, such as after
    a lost answer, is recognised by its `webhook-id`: dropping that is the receiver's business.

    Raises:
        SignatureError: refuse it; SignatureMissing where headers are absent or unreadable (400), SignatureInvalid
            where no signature fits or its timestamp is more than five minutes from this clock (401).
        SettingsError: one of `secrets` is none.
        ClientError: it is genuine, and its body no JSON object; or there are no secrets.
    """
    keys = [signature.decode_secret(each) for each in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise ClientError("give at least one secret")
    lowered = {name.lower(): value for name, value in headers.items()}
    signature.verify(keys, lowered, body, clock.now_ms() / 1000)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ClientError("the webhook is genuine, and its body is no JSON object")
    return document
