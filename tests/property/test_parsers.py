"""Every parser that reads what strangers send gives a value or an error of ours, and never another exception."""

# ruff: noqa: PT017 - to be refused is as good an end as any here, and has claims of its own
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from aj.body import parse_object, read_body
from aj.egress import RETRY_AFTER_MOST_S, host_of, parse_retry_after_s
from aj.errors import (
    AddressRefused,
    BodyTooLarge,
    Invalid,
    Malformed,
    MalformedKey,
    SettingsError,
    SignatureError,
)
from aj.given import variable
from aj.headers import KEY_MAX_LENGTH, TRACE_MAX_LENGTH, idempotency_key, traceparent
from aj.job import to_json
from aj.registry import _pointer
from aj.settings import _PARSERS, Settings
from aj.signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, decode_secret, verify
from aj.store import connect
from hooksink.body import parse_job
from hooksink.receipts import Receipt, parse_line
from hooksink.refusals import NotAJob
from tests.property.hostile import ODD, header_text, hostile_bytes, hostile_text
from tests.unit.egress_receivers import loopback_egress

JSON_PIECES = (b'{"n":', b'{"', b'"}', b'":', b"{", b"}", b"[", b"]", b"5", b",", b'"', b"1e999", b"-0", b"\\", b"{}")
URL_PIECES = ("http://", "https://", "127.0.0.1", "hooks.example", ":80", "/hook", "?q=1", "[::1]", "0x7f", "xn--", "@")
DATES = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94", "Nov", "08:49:37", "+0000", "99999", "120", "-0000")
KEY = bytes(range(32))


@given(hostile_bytes(*JSON_PIECES))
def test_a_body_becomes_members_or_a_refusal(body: bytes) -> None:
    """What is accepted can be written as JSON again and read as the same."""
    try:
        members = parse_object(body)
    except (Malformed, Invalid) as refused:
        to_json(refused.detail.encode("utf-8", "replace").decode())
        return
    assert json.loads(to_json(members)) == members


class Stream:
    """A server's input that gives a little at a time, and may break."""

    def __init__(self, pieces: list[bytes], breaks: bool) -> None:
        self._pieces, self._breaks = [each for each in pieces if each], breaks

    def read(self, size: int) -> bytes:
        if not self._pieces:
            if self._breaks:
                raise OSError("cut")
            return b""
        piece = self._pieces.pop(0)
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
        return piece[:size]


@given(
    pieces=st.lists(st.binary(max_size=30), max_size=5),
    length=st.none() | st.integers(0, 90).map(str) | hostile_text("12", "-5", "5"),
    ends=st.booleans(),
    breaks=st.booleans(),
)
def test_a_request_body_is_read_whole_or_refused(
    pieces: list[bytes], length: str | None, ends: bool, breaks: bool
) -> None:
    """Whatever the length says and however the stream behaves: all of it, within the limit, or a refusal."""
    environ: dict[str, Any] = {"wsgi.input": Stream(list(pieces), breaks), "wsgi.input_terminated": ends}
    if length is not None:
        environ["CONTENT_LENGTH"] = length
    try:
        body = read_body(environ, 64)
    except (Malformed, BodyTooLarge):
        return
    assert len(body) <= 64
    if length:
        assert body == b"".join(pieces)[: int(length)]
        assert len(body) == int(length)
    elif ends:
        assert body == b"".join(pieces)


@given(st.none() | header_text('"', "abc", "a-1", '"abc"', ";a=1", ",", "\\") | hostile_text('"', "abc"))
def test_an_idempotency_key_is_read_or_refused(value: str | None) -> None:
    """An accepted key is visible ASCII, and its quoted form names the same key."""
    try:
        key = idempotency_key(value)
    except MalformedKey:
        return
    assert (key is None) == (value is None)
    if key is not None:
        assert 1 <= len(key) <= KEY_MAX_LENGTH
        assert all("\x21" <= each <= "\x7e" for each in key)
        quoted = key.replace("\\", "\\\\").replace('"', '\\"')
        assert idempotency_key(f'"{quoted}"') == key


TRACE_PIECES = ("00", "01", "fe", "ff", "-", "4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32, "00f067aa0ba902b7", "0" * 16)


@given(header_text(*TRACE_PIECES) | st.lists(st.sampled_from(TRACE_PIECES), min_size=4, max_size=6).map("-".join))
@example("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more")
def test_a_traceparent_is_read_or_passed_over(value: str) -> None:
    """What is read can be sent as a header and told apart by its fields, none of which is all zeros."""
    trace = traceparent(value)
    if trace is not None:
        version, trace_id, parent_id, flags, *more = trace.split("-")
        assert trace.isascii()
        assert trace.isprintable()
        assert not set(trace) & {" ", ","}
        assert len(trace) <= TRACE_MAX_LENGTH
        assert [len(each) for each in (version, trace_id, parent_id, flags)] == [2, 32, 16, 2]
        assert int(trace_id, 16)
        assert int(parent_id, 16)
        assert version != "ff"
        assert not more or version != "00"


@given(hostile_text(*URL_PIECES))
def test_a_callback_url_is_read_or_refused(url: str) -> None:
    """What is accepted is visible ASCII without user information, and its host is one that can be counted by."""
    try:
        endpoint = loopback_egress().check_url(url)
        host = host_of(url)
    except AddressRefused as refused:
        assert "\n" not in str(refused)
        return
    assert url.isascii()
    assert "@" not in url.split("/")[2]
    assert host.strip("[]") in endpoint
    assert host == host.lower()


@given(hostile_text(*DATES))
@example("9" * 5000)
@example("Sun, 06 Nov 99999 08:49:37 GMT")
@example("Sun, 06 Nov 1994 08:49:37 +9999999999999999999999")
def test_a_retry_after_is_a_time_or_nothing(text: str) -> None:
    """A receiver's word never makes a delivery fail, and never puts it off for more than a year."""
    asked_s = parse_retry_after_s(text)
    assert asked_s is None or 0 <= asked_s <= RETRY_AFTER_MOST_S


@given(
    headers=st.dictionaries(
        st.sampled_from([ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER]),
        header_text("v1,", "v1a,", " ", "1700000000", "msg_1", "AAAA=") | hostile_text("v1,", "1700000000", "msg_1"),
    ),
    body=st.binary(max_size=20),
    now_s=st.floats(0, 4e9),
)
def test_a_strangers_signature_never_verifies(headers: Mapping[str, str], body: bytes, now_s: float) -> None:
    """Whatever the headers hold, without the secret there is only a refusal."""
    with pytest.raises(SignatureError):
        verify([KEY], headers, body, now_s)


@given(hostile_text("whsec_", "AAAA", "=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))
def test_a_secret_is_read_or_refused_without_being_repeated(text: str) -> None:
    """The message may land in a log."""
    try:
        assert 24 <= len(decode_secret(text)) <= 64
    except SettingsError as refused:
        rest = text.removeprefix("whsec_")
        assert len(rest) < 6 or rest in ODD or rest not in str(refused)


VALUES = ("1", "0", "5.5", "true", "127.0.0.1:8141", "10.0.0.0/8", "[::1]:80", "redis://", "a.b", "q:jobs2", ",", "/x")


@profile(max_examples=30)
@given(text=hostile_text(*VALUES), given_as=st.sampled_from(["env", "config"]))
@pytest.mark.parametrize("name", _PARSERS)
def test_a_setting_is_accepted_or_named(name: str, text: str, given_as: str) -> None:
    """One line that names the variable, and shows its value unless that may be a secret."""
    called = variable(name)
    try:
        if given_as == "env":
            Settings.from_env({called: text})
        else:
            Settings.from_config({called: text})
    except SettingsError as refused:
        said = str(refused)
        assert called in said or "AJ_IDEMPOTENCY_TTL_S" in said
        assert "\n" not in said
        if _PARSERS[name][1]:
            assert len(text) < 6 or text in ODD or text not in said


@given(st.dictionaries(st.sampled_from([variable(each) for each in _PARSERS]), st.none() | st.integers() | st.floats()))
def test_a_flask_config_of_other_types_is_accepted_or_refused(config: dict[str, object]) -> None:
    """A config is written in Python, where anything may stand."""
    try:
        Settings.from_config(config)
    except SettingsError as refused:
        assert "AJ_" in str(refused)


@given(
    hostile_text("redis://", "rediss://", "unix://", ":Marked/pw@", ":p@", "127.0.0.1", ":6379", "/0", "?db=1", "?x=y")
)
@example("redis://:Marked/pw@127.0.0.1:6379/0")
@example("redis://:Marked℀pw@127.0.0.1:6379/0")
@example("redis://127.0.0.1/0?no_such_option=1")
@example("rediss://127.0.0.1/0?ssl_cert_reqs=Marked")
def test_the_address_of_a_store_is_taken_or_refused_without_being_repeated(url: str) -> None:
    """Where it is taken, a connection can be made of it; where not, no part of a password is told."""
    try:
        settings = Settings.from_env({"AJ_REDIS_URL": url})
        client = connect(settings.redis_url)
        client.connection_pool.make_connection()
    except SettingsError as refused:
        assert "Marked" not in str(refused)


@given(
    hostile_bytes(b'{"job_id": "x", "status": "failed"}', b'{"job_id":', b'"status":', b'"queued"', b"{", b"}", b",")
)
@example(b'{"job_id": "\\ud800", "status": "failed"}')
@example(b'{"job_id": "x", "status": ["failed"]}')
@example(b'{"job_id": "x", "status": {}}')
@example(b"[" * 100_000)
@example(b"1" * 5000)
def test_hooksink_reads_a_job_or_refuses(body: bytes) -> None:
    """What it accepts can be written into a receipt."""
    try:
        job_id, status = parse_job(body)
    except NotAJob:
        return
    assert 1 <= len(job_id) <= 255
    assert status in ("queued", "running", "succeeded", "failed")


LINE = b"2026-11-29T15:00:00.123Z job_id=a status=failed webhook_id=b signature=valid duplicate=false\n"


@given(
    hostile_bytes(LINE, LINE[:24], b" job_id=", b" status=", b'"a"', b'"\\u00', b'"\\ud800"', b" signature=none", b"\n")
)
def test_a_line_of_the_log_is_a_receipt_or_skipped(line: bytes) -> None:
    """A log may hold what others wrote and what a crash cut short."""
    assert isinstance(parse_line(line), Receipt | None)


@given(
    st.lists(hostile_text("a/b", "~1").filter(lambda text: "\ud800" not in text and text.isprintable()) | st.integers())
)
def test_a_pointer_leads_back_to_what_it_was_made_of(path: list[str | int]) -> None:
    """Whatever a member is called, the pointer is a URI fragment of ASCII, and read as RFC 6901 says it is the path."""
    pointer = _pointer(tuple(path))
    assert pointer.isascii()
    assert "\n" not in pointer
    assert pointer.startswith("#")
    parts = [unquote(each).replace("~1", "/").replace("~0", "~") for each in pointer[1:].split("/")[1:]]
    assert parts == [str(each) for each in path]
