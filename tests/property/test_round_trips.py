"""What is written is read as it was, and what means the same counts as the same."""

from __future__ import annotations

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aj.clock import rfc3339
from aj.errors import SignatureInvalid
from aj.job import Submission, is_job_id, new_job_id, to_json
from aj.schedule import JITTER, RETRY_AFTER_CAP_S, delay_before_s, retry_delay_s
from aj.signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, TOLERANCE_S, sign, verify
from hooksink.receipts import LINE_MAX_BYTES, VALUE_MAX_CHARS, Receipt, format_line, parse_line
from tests.property.hostile import hostile_text, json_names, json_values

MS_OF_YEAR_10000 = 253_402_300_800_000
times_ms = st.integers(0, MS_OF_YEAR_10000 - 1)
values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=VALUE_MAX_CHARS),
    hostile_text(" job_id=", " status=failed", "\n", "duplicate=true").filter(
        lambda text: text.isprintable() or "\n" in text
    ),
).map(lambda text: text.encode("utf-8", "ignore").decode()[:VALUE_MAX_CHARS])
receipts = st.builds(
    Receipt,
    received_at=times_ms.map(rfc3339),
    job_id=values,
    status=values,
    webhook_id=values,
    signature=st.sampled_from(["valid", "none"]),
    duplicate=st.booleans(),
)


@given(receipts)
def test_a_receipt_is_read_as_it_was_written(receipt: Receipt) -> None:
    """Whatever its values hold, it is one line of ASCII."""
    line = format_line(receipt)
    assert parse_line(line) == parse_line(line[:-1]) == receipt
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert not [byte for byte in line[:-1] if not 0x20 <= byte <= 0x7E]


@given(st.lists(receipts, max_size=5))
def test_a_log_of_receipts_is_read_line_by_line(written: list[Receipt]) -> None:
    """No value can start a line or forge a field."""
    log = b"".join(map(format_line, written))
    assert [parse_line(line) for line in log.splitlines()] == written
    for line in log.splitlines():
        assert line.count(b" signature=") == line.count(b" signature=valid") + line.count(b" signature=none")


@given(receipts)
def test_a_line_has_a_greatest_length(receipt: Receipt) -> None:
    """Readers seek by it. A status is one of four words, so only two values can be long."""
    known = Receipt(receipt.received_at, receipt.job_id, "succeeded", receipt.webhook_id, "valid", receipt.duplicate)
    assert len(format_line(known)) <= LINE_MAX_BYTES


@given(receipts, st.data())
def test_a_line_that_was_cut_is_no_other_receipt(receipt: Receipt, data: st.DataObject) -> None:
    """A crash leaves the start of a line, which is skipped and never read as something else."""
    line = format_line(receipt)[:-1]
    cut = data.draw(st.integers(0, len(line) - 1))
    assert parse_line(line[:cut]) is None


def shuffled(value: Any, order: random.Random) -> Any:
    """The same JSON value with the members of each object in another order."""
    if isinstance(value, dict):
        names = list(value)
        order.shuffle(names)
        return {name: shuffled(value[name], order) for name in names}
    return [shuffled(each, order) for each in value] if isinstance(value, list) else value


def spelled(value: Any) -> str:
    """JSON that tells `1`, `1.0` and `true` apart."""
    return json.dumps(value, sort_keys=True)


objects = st.dictionaries(json_names, json_values, max_size=4)


@given(params=objects, metadata=st.none() | objects, order=st.randoms(use_true_random=False))
def test_a_payload_has_one_fingerprint(params: Any, metadata: Any, order: random.Random) -> None:
    """The order of members and the white space between them mean nothing, at any depth."""
    first = Submission("square", params, None, metadata).fingerprint
    other_params, other_metadata = json.loads(json.dumps(shuffled([params, metadata], order), indent=3))
    assert Submission("square", other_params, None, other_metadata).fingerprint == first


@given(one=st.tuples(objects, st.none() | objects), other=st.tuples(objects, st.none() | objects))
def test_two_payloads_have_two_fingerprints(one: Any, other: Any) -> None:
    """Also where Python calls them equal: `1`, `1.0` and `true` are three values."""
    assume(spelled(one) != spelled(other))
    prints = {Submission("square", params, None, metadata).fingerprint for params, metadata in (one, other)}
    assert len(prints) == 2


@given(
    value=json_values,
    twin=st.sampled_from([(1, True), (0, False), (1, 1.0), (0, -0.0), ("1", 1), ("", None), ([], {})]),
)
def test_values_that_python_mixes_up_have_two_fingerprints(value: Any, twin: tuple[Any, Any]) -> None:
    """The caller who sends `true` under the key of `1` is told."""
    one, other = (Submission("square", {"a": [each, value]}).fingerprint for each in twin)
    assert one != other


@given(at_ms=st.integers(0, 2**48 - 1), later_ms=st.integers(1, 10**9))
def test_an_id_is_a_uuid_of_version_7_that_tells_its_time(at_ms: int, later_ms: int) -> None:
    """Ids made later sort after, also as text."""
    text = new_job_id(at_ms)
    made = uuid.UUID(text)
    assert is_job_id(text)
    assert (made.version, made.variant, made.int >> 80) == (7, uuid.RFC_4122, at_ms)
    if at_ms + later_ms < 2**48:
        assert text < new_job_id(at_ms + later_ms)


@given(hostile_text("01a22875-8ab0-7b86-a00f-efef3fad16ff", "-7", "-a"))
def test_only_an_id_of_ours_looks_like_one(text: str) -> None:
    """Nothing else ever becomes part of a key."""
    if is_job_id(text):
        assert str(uuid.UUID(text)) == text


@given(times_ms)
def test_a_time_is_read_as_it_was_written(at_ms: int) -> None:
    """To the millisecond, in UTC, in a text that sorts like the time."""
    text = rfc3339(at_ms)
    assert datetime.fromisoformat(text) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    assert (len(text), text[-5], text[-1]) == (24, ".", "Z")
    assert text <= rfc3339(min(at_ms + 1, MS_OF_YEAR_10000 - 1))


keys = st.lists(st.binary(min_size=24, max_size=64), min_size=1, max_size=3, unique=True)
ids = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="."), min_size=1, max_size=40)


def signed(secrets: list[bytes], webhook_id: str, at_s: int, body: bytes) -> dict[str, str]:
    signature = sign(secrets, webhook_id, at_s, body)
    return {ID_HEADER: webhook_id, TIMESTAMP_HEADER: str(at_s), SIGNATURE_HEADER: signature}


@given(keys, ids, st.integers(0, 10**11), st.binary(max_size=100), st.integers(-TOLERANCE_S, TOLERANCE_S))
def test_what_was_signed_verifies(secrets: list[bytes], webhook_id: str, at_s: int, body: bytes, late_s: int) -> None:
    """With any one of the secrets, as long as it is fresh: so a secret is replaced without a gap."""
    headers = signed(secrets, webhook_id, at_s, body)
    for secret in secrets:
        verify([b"another secret of thirty bytes!", secret], headers, body, at_s + late_s)


@given(keys, ids, st.integers(400, 10**11), st.binary(max_size=40), st.data())
def test_what_was_changed_does_not_verify(
    secrets: list[bytes], webhook_id: str, at_s: int, body: bytes, data: st.DataObject
) -> None:
    """One bit of the body, one digit of the time, the id, or a secret that was not used."""
    headers = signed(secrets[:1], webhook_id, at_s, body)
    what = data.draw(st.sampled_from(["body", "time", "id", "secret", "stale"]))
    now_s, known = at_s, secrets[:1]
    if what == "body":
        body += b"x"
    elif what == "time":
        headers[TIMESTAMP_HEADER] = str(at_s + 1)
    elif what == "id":
        headers[ID_HEADER] = webhook_id + "x"
    elif what == "secret":
        known = secrets[1:]
    else:
        now_s = at_s + data.draw(st.sampled_from([-1, 1])) * (TOLERANCE_S + 1)
    with pytest.raises(SignatureInvalid):
        verify(known, headers, body, now_s)


schedules = st.lists(st.floats(0, 10**7), min_size=1, max_size=9)


@given(schedules, st.integers(1, 12), st.none() | st.floats(0, 10**9))
def test_a_delay_stays_within_its_bounds(schedule_s: list[float], attempt: int, asked_s: float | None) -> None:
    """A fifth either way of what the schedule says; longer where the receiver asks, by a day at most; then never."""
    delay_s = delay_before_s(attempt, schedule_s, asked_s)
    if attempt > len(schedule_s):
        assert delay_s is None
        return
    planned_s = schedule_s[attempt - 1]
    asked_for_s = min(asked_s or 0.0, RETRY_AFTER_CAP_S)
    assert delay_s is not None
    assert delay_s >= max(planned_s * (1 - JITTER) * 0.999_999, asked_for_s)
    assert delay_s <= max(planned_s * (1 + JITTER) * 1.000_001, asked_for_s)


@given(schedules, st.integers(1, 200), st.integers(0, 100))
def test_a_job_runs_again_as_often_as_it_may(delays_s: list[float], attempts: int, retries: int) -> None:
    """After the first attempt and each retry but the last; the last delay serves all that follow."""
    delay_s = retry_delay_s(attempts, retries, delays_s)
    assert delay_s == (None if attempts > retries else delays_s[min(attempts, len(delays_s)) - 1])


@given(json_values)
def test_json_is_read_as_it_was_written(value: object) -> None:
    """Results and metadata pass through as bytes."""
    assert spelled(json.loads(to_json(value))) == spelled(value)
