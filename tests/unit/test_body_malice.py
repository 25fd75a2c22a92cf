"""Bodies that mean harm: depth, length without an end, and chance."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from aj.body import DEEPEST_NESTING, parse_object
from aj.errors import Invalid, Malformed, Problem

VALID = [
    b'{"a":{"b":1},"c":{"b":1}}',
    b'{"a":1e2,"b":1E+2,"c":1e-2}',
    b'{"a":"\\ud83d\\ude00"}',
    b'{"a":"\\"\\\\\\/\\b"}',
    b'{ "n" : 5 , "m" : [ 1 , 2 ] }',
    '{"grün":"日本 😀"}'.encode(),
    b'{"a":null,"b":true,"c":false}',
]


def shown(body: bytes) -> str:
    return ascii(body)[2:40]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_64_levels_are_read_and_65_are_not(opening: str, closing: str) -> None:
    """The outermost object is the first level."""
    inside = (DEEPEST_NESTING - 1, DEEPEST_NESTING)
    flat = b',"b":[[]' + b",[]" * 100 + b"]}"
    ok, deep = (b'{"a":' + (opening * n + "1" + closing * n).encode() + flat for n in inside)
    assert parse_object(ok)
    with pytest.raises(Malformed, match="nested deeper than 64"):
        parse_object(deep)


@pytest.mark.parametrize(
    "text",
    ["[" * 1000, "{" * 1000, '\\"' + "[" * 1000, "\\\\" * 9, "[" * 100 + '\\"' + "{" * 100, "\\u005b" * 200, "]" * 999],
)
def test_brackets_inside_strings_are_no_levels(text: str) -> None:
    """Nor do escaped quotes end a string."""
    body = b'{"' + text.encode() + b'":[[]' + b",[]" * 100 + b'],"b":"' + text.encode() + b'"}'
    assert len(parse_object(body)) == 2


def test_a_string_that_seems_to_end_does_not_hide_depth() -> None:
    """An even number of backslashes leaves the quote a quote."""
    with pytest.raises(Malformed, match="nested deeper"):
        parse_object(b'{"a\\\\":' + b"[" * 64 + b"]" * 64 + b"}")


def test_many_siblings_are_not_deep() -> None:
    """Width is bounded by the size of the body alone."""
    assert len(parse_object(b'{"a":[' + b"[]," * 20_000 + b"[]]}")["a"]) == 20_001


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 70 + b'"' + b'\\"' * 500_000,
        b"[" + b"[]," * 70 + b'"' + b"\\" * 1_000_001,
        b"[" + b"[]," * 70 + b'"' * 1_000_001,
        b"[]" * 500_000,
        b'{"a":1.' + b"1" * 1_000_000 + b"e}",
        b'{"' + b"a" * 1_000_000 + b'":1,"' + b"a" * 1_000_000 + b'":1}',
        b" " * 1_000_000,
    ],
    ids=shown,
)
def test_a_megabyte_of_malice_is_refused_at_once(body: bytes) -> None:
    """The time grows with the length and not with its square, which would be minutes here."""
    before_s = time.process_time()
    with pytest.raises(Malformed) as caught:
        parse_object(body)
    assert time.process_time() - before_s < 2
    assert len(caught.value.detail) < 300


PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b":",
    b",",
    b"1",
    b"-",
    b".",
    b"e5",
    b"null",
    b"NaN",
    b" ",
    b"\\",
    b"\\u",
    b"d8",
]
PIECES += [b'"a":', b'"b"', b"\\ud800", b"\xff", b"\xc3\xa9", b"\x00", b"\n", b"true", b"9" * 50, b"/", b"{}", b"[[[["]


def test_chance_brings_out_nothing_but_an_object_or_a_refusal() -> None:
    """20,000 bodies of pieces of JSON and of bytes, and valid ones with a byte changed; the seed is fixed."""
    chance = random.Random(20261129)
    kinds = {Malformed: 0, Invalid: 0, dict: 0}
    for number in range(20_000):
        if number % 3 == 0:
            body = chance.randbytes(chance.randrange(40))
        elif number % 3 == 1:
            body = b"".join(chance.choices(PIECES, k=chance.randrange(12)))
        else:
            changed = bytearray(chance.choice(VALID))
            changed[chance.randrange(len(changed))] = chance.randrange(256)
            body = bytes(changed)
        try:
            read: Any = parse_object(body)
            json.dumps(read, allow_nan=False, ensure_ascii=False).encode()
            kinds[type(read)] += 1
        except Problem as refused:
            kinds[type(refused)] += 1
    assert min(kinds.values()) > 20
