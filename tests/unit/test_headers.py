"""What an Idempotency-Key may be, and which key it names."""

from __future__ import annotations

import random

import pytest

from aj.errors import MalformedKey
from aj.headers import idempotency_key

UUID = "8e03978e-40d5-43dd-bc93-6894a57f9324"

ACCEPTED = [
    ('"abc"', "abc"),
    ("abc", "abc"),
    (f'"{UUID}"', UUID),
    (UUID, UUID),
    ('"a"', "a"),
    ("a", "a"),
    ("0", "0"),
    ("?1", "?1"),
    ("1.5", "1.5"),
    (":YWJj:", ":YWJj:"),
    ("@1659578233", "@1659578233"),
    ("(a)", "(a)"),
    ("'abc'", "'abc'"),
    ("a;b=c", "a;b=c"),
    ("a=b", "a=b"),
    ("a\\b", "a\\b"),
    ("{}", "{}"),
    ("~!@#$%^&*()_+", "~!@#$%^&*()_+"),
    ("*", "*"),
    ("null", "null"),
    ('"a,b"', "a,b"),
    ('","', ","),
    ('"a;b"', "a;b"),
    ('"a\\"b"', 'a"b'),
    ('"\\""', '"'),
    ('"\\\\"', "\\"),
    (' "abc"', "abc"),
    ('"abc"\t ', "abc"),
    ("  abc  ", "abc"),
    ("a" * 255, "a" * 255),
    ('"' + "a" * 255 + '"', "a" * 255),
    ('"' + '\\"' * 255 + '"', '"' * 255),
]

REFUSED = [
    "",
    " ",
    "\t",
    '""',
    '" "',
    '"',
    '"""',
    '"abc',
    'abc"',
    'a"b',
    '"a"b"',
    '"abc"x',
    '"abc" "def"',
    '"abc", "def"',
    '"abc","abc"',
    "abc, def",
    "abc,abc",
    ",",
    ",abc",
    '"abc",',
    'abc, "abc"',
    "a b",
    "a\tb",
    '"a b"',
    '" abc"',
    '"a\tb"',
    '"abc";q=1',
    '"abc";q',
    '"abc" ; q',
    '"a\\b"',
    '"a\\',
    '"a\\"',
    '%"abc"',
    "é",
    '"é"',
    "\xc3\xa9",
    '"\xa0"',
    "\xa0abc",
    "日本",
    "\u2028",
    '"\U0001f600"',
    "\ud800",
    '"\udc80"',
    "\0",
    "abc\0",
    '"a\0b"',
    "abc\n",
    "\nabc",
    '"abc"\n',
    '"abc"\r\n',
    "abc\r\nX-Injected: 1",
    '"a\nb"',
    "\x7f",
    '"a\x7f"',
    "\x0babc",
    "a" * 256,
    '"' + "a" * 256 + '"',
    '"' + '\\"' * 256 + '"',
    "a" * 100_000,
    '"' + "a" * 100_000,
]


def shown(text: str) -> str:
    return ascii(text)[:50]


def test_no_header_is_no_key() -> None:
    """And not an error."""
    assert idempotency_key(None) is None


@pytest.mark.parametrize(("value", "key"), ACCEPTED, ids=shown)
def test_a_header_names_its_key(value: str, key: str) -> None:
    """A structured-field string, or the same text bare."""
    assert idempotency_key(value) == key


@pytest.mark.parametrize("value", REFUSED, ids=shown)
def test_what_is_no_single_key_is_refused(value: str) -> None:
    """With the form that is accepted, and without the value, which another reader may take for a secret."""
    with pytest.raises(MalformedKey) as caught:
        idempotency_key(value)
    assert caught.value.status == 400
    assert "1 to 255 visible ASCII characters" in caught.value.detail
    assert len(caught.value.detail) < 120
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("code", range(0x21, 0x7F))
def test_every_visible_ascii_character_may_stand_in_a_key(code: int) -> None:
    """Quoted all of them; bare all but the comma and the quote."""
    character = chr(code)
    escaped = "\\" + character if character in '"\\' else character
    assert idempotency_key(f'"x{escaped}"') == f"x{character}"
    if character not in '",':
        assert idempotency_key(f"x{character}") == f"x{character}"


@pytest.mark.parametrize("code", [*range(0x21), *range(0x7F, 0x100)])
def test_no_other_character_may(code: int) -> None:
    """Neither quoted nor bare, where it stands inside."""
    for value in (f"x{chr(code)}x", f'"x{chr(code)}x"'):
        with pytest.raises(MalformedKey):
            idempotency_key(value)


def test_chance_brings_out_nothing_but_a_key_or_a_refusal() -> None:
    """20,000 values; what comes out as a key is visible ASCII of 1 to 255 characters. The seed is fixed."""
    chance = random.Random(20261129)
    letters = 'ab01"",;= \\?@:()*%\t\n\0é\ud800'
    keys = 0
    for _ in range(20_000):
        value = "".join(chance.choices(letters, k=chance.randrange(8)))
        if chance.random() < 0.5:
            value = f'"{value}"'
        try:
            key = idempotency_key(value)
        except MalformedKey:
            continue
        keys += 1
        assert key
        assert key.isascii()
        assert key.isprintable()
        assert " " not in key
    assert keys > 1000
