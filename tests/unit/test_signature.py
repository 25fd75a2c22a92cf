"""Signatures of webhooks, judged by the independent `standardwebhooks` package in both directions."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
import standardwebhooks

from aj import clock
from aj.errors import SettingsError, SignatureInvalid, SignatureMissing
from aj.signature import TOLERANCE_S, decode_secret, new_secret, sign, verify

# The vector that the specification's own libraries are tested with.
VECTOR_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VECTOR_ID, VECTOR_AT_S, VECTOR_BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}'
VECTOR_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

NEW, OLD, FOREIGN = b"n" * 24, b"o" * 64, b"f" * 32
BODY = '{"job_id": "0193", "text": "é 日本"}'.encode()
NOW_S = 1_800_000_000


def secret(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


def headers(signature: str, webhook_id: str = "msg_1", timestamp: str = str(NOW_S)) -> dict[str, str]:
    return {"webhook-id": webhook_id, "webhook-timestamp": timestamp, "webhook-signature": signature}


def accepts(given: dict[str, str], body: bytes = BODY, keys: tuple[bytes, ...] = (NEW,), now_s: float = NOW_S) -> bool:
    """Whether a webhook is taken; a malformed one is an error of its own and not caught."""
    try:
        verify(keys, given, body, now_s)
    except SignatureInvalid:
        return False
    return True


def test_a_new_secret_is_fresh_and_one_that_is_taken() -> None:
    """32 bytes of chance, within what the specification allows."""
    one, other = decode_secret(new_secret()), decode_secret(new_secret())
    assert one != other
    assert len(one) == len(other) == 32


def test_the_published_vector_is_signed_as_published() -> None:
    """Secret, id, timestamp and body of the specification give its signature."""
    assert sign([decode_secret(VECTOR_SECRET)], VECTOR_ID, VECTOR_AT_S, VECTOR_BODY) == VECTOR_SIGNATURE


def test_the_published_vector_verifies() -> None:
    """At its own time, and not at ours."""
    given = headers(VECTOR_SIGNATURE, VECTOR_ID, str(VECTOR_AT_S))
    keys = (decode_secret(VECTOR_SECRET),)
    assert accepts(given, VECTOR_BODY, keys, VECTOR_AT_S)
    assert not accepts(given, VECTOR_BODY, keys)


@pytest.mark.parametrize("key", [NEW, OLD])
@pytest.mark.parametrize("body", [BODY, b"", b"{}", b"a.b.c", b" \n\t"])
def test_the_reference_verifier_accepts_what_we_sign(key: bytes, body: bytes) -> None:
    """`standardwebhooks` is satisfied, whatever the body."""
    now_s = clock.now_ms() // 1000
    given = headers(sign([key], "msg_1", now_s, body), timestamp=str(now_s))
    assert standardwebhooks.Webhook(secret(key)).verify(body, given, json_parse=False) is None


@pytest.mark.parametrize("key", [NEW, OLD])
@pytest.mark.parametrize("body", [BODY, b"", b"{}", b"a.b.c", b" \n\t"])
def test_we_accept_what_the_reference_signs(key: bytes, body: bytes) -> None:
    """The other direction."""
    signature = standardwebhooks.Webhook(secret(key)).sign("msg_1", datetime.fromtimestamp(NOW_S, UTC), body.decode())
    assert accepts(headers(signature), body, (key,))


def test_every_secret_signs_and_the_reference_accepts_each() -> None:
    """One header, one signature per secret in the order given, so that a receiver may hold either."""
    now_s = clock.now_ms() // 1000
    both = sign([NEW, OLD], "msg_1", now_s, BODY)
    assert both == f"{sign([NEW], 'msg_1', now_s, BODY)} {sign([OLD], 'msg_1', now_s, BODY)}"
    for key in (NEW, OLD):
        given = headers(both, timestamp=str(now_s))
        assert standardwebhooks.Webhook(secret(key)).verify(BODY, given, json_parse=False) is None


@pytest.mark.parametrize("held", [(NEW,), (OLD,), (NEW, OLD), (OLD, NEW), (FOREIGN, OLD)])
@pytest.mark.parametrize("used", [[NEW, OLD], [OLD, NEW], [FOREIGN, NEW, OLD]])
def test_one_common_secret_is_enough(held: tuple[bytes, ...], used: list[bytes]) -> None:
    """Whichever of several secrets sender and receiver share."""
    assert accepts(headers(sign(used, "msg_1", NOW_S, BODY)), keys=held)


@pytest.mark.parametrize("held", [(), (FOREIGN,), (FOREIGN, OLD)])
def test_no_common_secret_is_refused(held: tuple[bytes, ...]) -> None:
    """A receiver that holds no secret at all trusts nobody."""
    assert not accepts(headers(sign([NEW], "msg_1", NOW_S, BODY)), keys=held)


@pytest.mark.parametrize("body", [BODY + b" ", BODY[:-1], b"", BODY.replace(b"0193", b"0194")])
def test_a_changed_body_is_refused(body: bytes) -> None:
    """One byte more, one less, none, another one."""
    assert not accepts(headers(sign([NEW], "msg_1", NOW_S, BODY)), body)


def test_a_changed_id_or_timestamp_is_refused() -> None:
    """Both are signed."""
    signature = sign([NEW], "msg_1", NOW_S, BODY)
    assert not accepts(headers(signature, webhook_id="msg_2"))
    assert not accepts(headers(signature, timestamp=str(NOW_S + 1)))


@pytest.mark.parametrize(("off_s", "taken"), [(0, True), (TOLERANCE_S, True), (TOLERANCE_S + 0.001, False)])
@pytest.mark.parametrize("sign_of_time", [1, -1])
def test_a_timestamp_may_be_five_minutes_off(off_s: float, taken: bool, sign_of_time: int) -> None:
    """In either direction, to the second."""
    signature = sign([NEW], "msg_1", NOW_S, BODY)
    assert accepts(headers(signature), now_s=NOW_S + sign_of_time * off_s) is taken


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", [None, "", " "])
def test_an_absent_or_empty_header_is_missing(name: str, value: str | None) -> None:
    """The error names the header."""
    given = headers(sign([NEW], "msg_1", NOW_S, BODY))
    if value is None:
        del given[name]
    else:
        given[name] = value
    with pytest.raises(SignatureMissing, match=name):
        accepts(given)


@pytest.mark.parametrize("webhook_id", ["a.b", ".", "msg_1.1", "a b", "a\n", "é", "a" * 256, "\x7f", "a\0"])
def test_a_malformed_id_is_missing(webhook_id: str) -> None:
    """A full stop would let id and timestamp be cut at another place; the rest is no id of anybody's."""
    given = headers("v1,AAAA", webhook_id=webhook_id)
    with pytest.raises(SignatureMissing, match="webhook-id"):
        accepts(given)


@pytest.mark.parametrize(
    "timestamp",
    ["now", "-5", "+5", "1.5", "1e9", " 5", "5 ", "5\n", "0x5", "1_000", "\u0661\u0662", "²", "9" * 13, "nan"],
)
def test_a_malformed_timestamp_is_missing(timestamp: str) -> None:
    """Decimal digits only, and not more than a date can need."""
    with pytest.raises(SignatureMissing, match="webhook-timestamp"):
        accepts(headers("v1,AAAA", timestamp=timestamp))


@pytest.mark.parametrize(
    "signature",
    [
        "v1",
        "v1,",
        ",",
        ",,",
        "v1,,",
        "v1,é",
        "v1,\ud800",
        "v1,日本",
        "v1,====",
        "v1,not base64!",
        "v1 ,AAAA",
        "v1a,AAAA",
        "v2,AAAA",
        "V1,AAAA",
        "garbage",
        "v1," + "A" * 100_000,
    ],
)
def test_a_malformed_signature_is_refused_without_a_fault(signature: str) -> None:
    """Whatever the header holds, the answer is no."""
    assert not accepts(headers(signature))


@pytest.mark.parametrize("around", ["v2,AAAA {} v1a,BBBB", "{} garbage", "  v1,AAAA   {}  ", "v1,é {}"])
def test_a_good_signature_among_others_is_found(around: str) -> None:
    """Other versions and other people's signatures are skipped, never fatal."""
    assert accepts(headers(around.format(sign([NEW], "msg_1", NOW_S, BODY))))


def test_a_signature_of_another_version_with_the_right_value_is_refused() -> None:
    """`v1` is the only version whose value is compared."""
    value = sign([NEW], "msg_1", NOW_S, BODY).removeprefix("v1,")
    assert not accepts(headers(f"v2,{value}"))


@pytest.mark.parametrize("key", [b"k" * 24, b"k" * 64, bytes(range(32))])
def test_a_secret_is_the_base64_behind_its_prefix(key: bytes) -> None:
    """24 to 64 bytes."""
    assert decode_secret(secret(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        secret(b"k" * 23),
        secret(b"k" * 65),
        secret(NEW).removeprefix("whsec_"),
        secret(NEW).upper(),
        secret(NEW) + " ",
        secret(b"k" * 25).rstrip("="),
        "whsec_" + "é" * 32,
        "whsec_" + "-_" * 16,
        "whsec_" + "日" * 32,
    ],
)
def test_a_wrong_secret_is_refused_and_not_repeated(text: str) -> None:
    """The message says what is accepted and never shows the text."""
    with pytest.raises(SettingsError, match="whsec_ followed by base64 of 24 to 64 bytes") as caught:
        decode_secret(text)
    hidden = text.removeprefix("whsec_").strip()
    assert not hidden or hidden not in str(caught.value)
