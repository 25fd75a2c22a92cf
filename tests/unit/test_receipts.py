"""The line of a receipt: its exact form, and that no value can break out of it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hooksink.receipts import LINE_MAX_BYTES, VALUE_MAX_CHARS, Receipt, format_line, parse_line

PLAIN = Receipt("2026-11-29T15:00:00.123Z", "0193a5b1-7c00", "succeeded", "msg_1", "valid", False)
FORGED = "2026-11-29T15:00:00.123Z job_id=x status=succeeded webhook_id=y signature=valid duplicate=false"

HOSTILE = [
    "",
    " ",
    "a b",
    "=",
    'a"b',
    '"',
    '"a"',
    "\\",
    "a\\",
    '\\"',
    "\\u0041",
    "\n",
    "a\r\nb",
    f"x\n{FORGED}\n",
    f'x" status=failed {FORGED}',
    "x duplicate=false",
    "\0",
    "\t",
    "\x1b[31mred",
    "\x7f",
    "\x80\x9f",
    "\u2028\u2029\x85",
    "日本語",
    "é",
    "\U0001f600",
    "\ufeff",
    "\u202eevil",
    "'",
    "true",
    "null",
    "{}",
    "%0a",
]


def test_a_plain_receipt_has_the_documented_line() -> None:
    """The line of the contract, byte for byte."""
    assert format_line(PLAIN) == (
        b"2026-11-29T15:00:00.123Z job_id=0193a5b1-7c00 status=succeeded webhook_id=msg_1"
        b" signature=valid duplicate=false\n"
    )


def test_a_duplicate_without_signature_says_both() -> None:
    """The two words at the end follow the receipt."""
    line = format_line(replace(PLAIN, signature="none", duplicate=True))
    assert line.endswith(b" signature=none duplicate=true\n")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("", b'""'),
        ("a b", b'"a b"'),
        ("a=b", b'"a=b"'),
        ('a"b', b'"a\\"b"'),
        ("a\\b", b'"a\\\\b"'),
        ("a\nb", b'"a\\nb"'),
        ("é", b'"\\u00e9"'),
        ("\x7f", b'"\\u007f"'),
        ("a.b-c_d:e,f/g", b"a.b-c_d:e,f/g"),
    ],
)
def test_a_value_is_quoted_exactly_when_it_needs_it(value: str, written: bytes) -> None:
    """Visible ASCII without quote, equals sign and backslash stands bare; the rest is a JSON string."""
    assert b" job_id=" + written + b" status=" in format_line(replace(PLAIN, job_id=value))


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_come_back_as_they_were(value: str) -> None:
    """Whatever a value holds, in any field, reading the line gives the same receipt."""
    for receipt in (
        replace(PLAIN, job_id=value),
        replace(PLAIN, status=value),
        replace(PLAIN, webhook_id=value),
        replace(PLAIN, job_id=value, status=value, webhook_id=value),
    ):
        assert parse_line(format_line(receipt)) == receipt


@pytest.mark.parametrize("value", HOSTILE)
def test_a_line_is_one_line_of_visible_ascii(value: str) -> None:
    """No value puts a control character or a second newline into the log."""
    line = format_line(replace(PLAIN, job_id=value, webhook_id=value))
    assert line.endswith(b"\n")
    assert all(0x20 <= byte <= 0x7E for byte in line[:-1])


def test_random_values_come_back_as_they_were() -> None:
    """The round trip holds for 2,000 receipts of characters that were chosen to hurt."""
    chance = random.Random(20261129)
    alphabet = 'ab \t\n\r"\\=u0041n{}[],é\x00\x1f\x7f\x85\u2028日\U0001f600'

    def text() -> str:
        return "".join(chance.choices(alphabet, k=chance.randrange(12)))

    for _ in range(2000):
        receipt = Receipt(
            PLAIN.received_at, text(), text(), text(), chance.choice(["valid", "none"]), chance.random() < 0.5
        )
        assert parse_line(format_line(receipt)) == receipt


def test_the_longest_line_keeps_within_the_bound() -> None:
    """Two values of the greatest length in the longest escape still fit `LINE_MAX_BYTES`."""
    longest = "\U0001f600" * VALUE_MAX_CHARS
    assert len(format_line(replace(PLAIN, job_id=longest, webhook_id=longest, duplicate=False))) <= LINE_MAX_BYTES


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"hello",
        b"2026-11-29T15:00:00.123Z",
        format_line(PLAIN)[:-5],
        format_line(PLAIN)[3:],
        format_line(PLAIN) + b"\n",
        b" " + format_line(PLAIN),
        format_line(PLAIN).replace(b" status", b"  status"),
        format_line(PLAIN).replace(b"=false", b"=maybe"),
        format_line(PLAIN).replace(b"=valid", b"=forged"),
        format_line(PLAIN).replace(b"msg_1", b""),
        format_line(PLAIN).replace(b"msg_1", b'"msg_1'),
        format_line(PLAIN).replace(b"msg_1", b'"\\x41"'),
        format_line(PLAIN).replace(b"msg_1", b"\xff"),
        format_line(PLAIN).replace(b"msg_1", "é".encode()),
        format_line(PLAIN).rstrip() + b" more=1\n",
    ],
)
def test_a_line_of_another_form_is_no_receipt(line: bytes) -> None:
    """What a crash cut short or somebody else wrote is skipped, never guessed at."""
    assert parse_line(line) is None


def test_the_newline_at_the_end_is_optional() -> None:
    """A line that was split off at its newline reads the same."""
    assert parse_line(format_line(PLAIN).rstrip(b"\n")) == PLAIN
