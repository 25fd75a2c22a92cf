"""A webhook on the side of its receiver: what is genuine is read, and everything else is refused."""

from __future__ import annotations

import base64
import email.message
import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from flask import Flask, request
from standardwebhooks.webhooks import Webhook

from aj import clock
from aj.client import ClientError, SignatureError, verify
from aj.errors import SettingsError, SignatureInvalid, SignatureMissing
from aj.signature import decode_secret, sign

SECRET, OTHER = ("whsec_" + base64.b64encode(key * 32).decode() for key in (b"s", b"o"))
DOCUMENT = {"type": "job.succeeded", "job_id": "01a2", "result": "é 日本"}
BODY = json.dumps(DOCUMENT, ensure_ascii=False).encode()


def headers(*secrets: str, body: bytes = BODY, age_s: int = 0) -> dict[str, str]:
    sent_at = clock.now_ms() // 1000 - age_s
    signature = sign(map(decode_secret, secrets), "msg_1", sent_at, body)
    return {"webhook-id": "msg_1", "webhook-timestamp": str(sent_at), "webhook-signature": signature}


def test_what_the_reference_library_signs_is_genuine() -> None:
    """`standardwebhooks` is the sender here."""
    at = datetime.fromtimestamp(clock.now_ms() // 1000, UTC)
    signature = Webhook(SECRET).sign("msg_1", at, BODY.decode())
    given = {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(int(at.timestamp())), "Webhook-Signature": signature}
    assert verify(given, BODY, [SECRET]) == DOCUMENT


@pytest.mark.parametrize("signed_by", [(SECRET,), (OTHER, SECRET), (SECRET, OTHER)])
@pytest.mark.parametrize("known", [[SECRET], [OTHER, SECRET], (SECRET,), SECRET])
def test_one_secret_that_fits_is_enough(signed_by: tuple[str, ...], known: list[str]) -> None:
    """So that either side can change first; a single secret may be given by itself."""
    assert verify(headers(*signed_by), BODY, known) == DOCUMENT


@pytest.mark.parametrize("spelt", [str.lower, str.upper, str.title])
def test_names_of_headers_are_taken_in_any_case(spelt: type[str]) -> None:
    """And from what frameworks have for headers."""
    given = {spelt(name): value for name, value in headers(SECRET).items()}
    assert verify(given, BODY, [SECRET]) == DOCUMENT
    message = email.message.Message()
    for name, value in given.items():
        message[name] = value
    assert verify(message, BODY, [SECRET]) == DOCUMENT
    with Flask(__name__).test_request_context(method="POST", headers=given, data=BODY):
        assert verify(request.headers, request.get_data(), [SECRET]) == DOCUMENT


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, SignatureMissing),
        (headers(SECRET) | {"webhook-timestamp": "soon"}, SignatureMissing),
        (headers(SECRET) | {"webhook-signature": ""}, SignatureMissing),
        (headers(OTHER), SignatureInvalid),
        (headers(SECRET) | {"webhook-id": "msg_2"}, SignatureInvalid),
        (headers(SECRET) | {"webhook-signature": "v1,ü v2,x"}, SignatureInvalid),
    ],
)
def test_all_else_is_a_signature_error(given: Mapping[str, str], error: type[SignatureError]) -> None:
    """Two kinds: what cannot be read, and what is wrong or old."""
    with pytest.raises(error):
        verify(given, BODY, [SECRET])


def test_another_body_is_refused_before_it_is_read() -> None:
    """Whatever it says."""
    with pytest.raises(SignatureInvalid):
        verify(headers(SECRET), BODY + b" ", [SECRET])


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
def test_a_genuine_body_that_is_no_object_is_an_error_of_its_own(body: bytes) -> None:
    """The signature is right, so 401 would be wrong."""
    with pytest.raises(ClientError):
        verify(headers(SECRET, body=body), body, [SECRET])


def test_without_secrets_nothing_is_genuine() -> None:
    """A receiver that lost its configuration says so, and repeats no secret that is none."""
    with pytest.raises(ClientError):
        verify(headers(SECRET), BODY, [])
    with pytest.raises(SettingsError) as caught:
        verify(headers(SECRET), BODY, ["hunter2"])
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("age_s", [400, -400])
def test_what_is_too_old_or_too_new_is_a_signature_error(age_s: int) -> None:
    """Five minutes are allowed."""
    with pytest.raises(SignatureInvalid):
        verify(headers(SECRET, age_s=age_s), BODY, [SECRET])
