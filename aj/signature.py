"""Signs and verifies webhooks as Standard Webhooks 1.0 has it, symmetric form (`v1`).

What is signed is `<webhook-id>.<webhook-timestamp>.<body>`, the body being the raw bytes.
One header carries one signature per secret, so that a secret can be replaced without a gap.
This file holds no HTTP and reads no settings.

Source: Standard Webhooks specification 1.0, "Webhook headers" and "Signature scheme".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping

from aj.errors import SettingsError, SignatureInvalid, SignatureMissing

SECRET_PREFIX = "whsec_"
SECRET_MIN_BYTES, SECRET_MAX_BYTES = 24, 64
NEW_SECRET_BYTES = 32
TOLERANCE_S = 300

ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER = "webhook-id", "webhook-timestamp", "webhook-signature"

_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,255}")  # visible ASCII without the full stop that joins the parts
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def new_secret() -> str:
    """A fresh secret in its `whsec_…` form."""
    return SECRET_PREFIX + base64.b64encode(os.urandom(NEW_SECRET_BYTES)).decode("ascii")


def decode_secret(text: str) -> bytes:
    """The key bytes of a `whsec_…` secret.

    Raises: SettingsError: no prefix, not base64, or not 24 to 64 bytes long. The text is not repeated.
    """
    accepted = f"{SECRET_PREFIX} followed by base64 of {SECRET_MIN_BYTES} to {SECRET_MAX_BYTES} bytes"
    if not text.startswith(SECRET_PREFIX):
        raise SettingsError(f"a webhook secret must be {accepted}")
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:  # binascii.Error is one; a character outside ASCII gives a plain one
        raise SettingsError(f"a webhook secret must be {accepted}") from None
    if not SECRET_MIN_BYTES <= len(key) <= SECRET_MAX_BYTES:
        raise SettingsError(f"a webhook secret must be {accepted}; this one has {len(key)} bytes")
    return key


def sign(secrets: Iterable[bytes], webhook_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of `webhook-signature`: one `v1,…` per key, separated by spaces, in the order given."""
    return " ".join(f"v1,{_mac(key, webhook_id, str(timestamp_s), body)}" for key in secrets)


def verify(secrets: Iterable[bytes], headers: Mapping[str, str], body: bytes, now_s: float) -> None:
    """Accepts a webhook, or says why not.

    `headers` maps names in lower case to values, `now_s` is seconds since the epoch. One signature that
    matches one key is enough; signatures of other versions are skipped.

    Raises:
        SignatureMissing: a header is absent, or the id or the timestamp is not of its form.
        SignatureInvalid: no signature matches, or the timestamp is more than 300 s from `now_s`.
    """
    webhook_id, timestamp, signatures = (
        headers.get(name, "") for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    )
    if not _ID.fullmatch(webhook_id):
        raise SignatureMissing(f"{ID_HEADER} is absent or malformed")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise SignatureMissing(f"{TIMESTAMP_HEADER} is absent or not a number of seconds")
    if not signatures.strip():
        raise SignatureMissing(f"{SIGNATURE_HEADER} is absent")
    if abs(now_s - int(timestamp)) > TOLERANCE_S:
        raise SignatureInvalid(f"{TIMESTAMP_HEADER} is more than {TOLERANCE_S} s from this clock")
    offered = [
        value.encode("utf-8", "replace")
        for version, _, value in (part.partition(",") for part in signatures.split())
        if version == "v1"
    ]
    expected = [_mac(key, webhook_id, timestamp, body).encode("ascii") for key in secrets]
    # Every pair is compared, so that the time taken says nothing about which one matched.
    matches = [hmac.compare_digest(mac, value) for mac in expected for value in offered]
    if not any(matches):
        raise SignatureInvalid("no signature matches any of the secrets")


def _mac(key: bytes, webhook_id: str, timestamp: str, body: bytes) -> str:
    signed = b".".join((webhook_id.encode("ascii"), timestamp.encode("ascii"), body))
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")
