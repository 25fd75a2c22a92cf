"""What a request body may be: a table in the manner of JSONTestSuite, and chance."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aj.body import DEEPEST_NESTING, parse_object
from aj.errors import Invalid, Malformed


def nested(depth: int, opening: str = "[", closing: str = "]") -> bytes:
    """An object whose innermost value lies `depth` levels deep, the object itself counted."""
    return f'{{"a":{opening * (depth - 1)}{closing * (depth - 1)}}}'.encode()


ACCEPTED: list[tuple[bytes, dict[str, Any]]] = [
    (b"{}", {}),
    (b" \t\r\n{} \t\r\n", {}),
    (b'{"n":5}', {"n": 5}),
    (b'{ "n" : 5 , "m" : [ 1 , 2 ] }', {"n": 5, "m": [1, 2]}),
    (b'{"":0}', {"": 0}),
    (b'{"a":null,"b":true,"c":false}', {"a": None, "b": True, "c": False}),
    (b'{"a":0,"b":-0,"c":-1}', {"a": 0, "b": 0, "c": -1}),
    (b'{"a":1.0}', {"a": 1.0}),
    (b'{"a":1e2,"b":1E+2,"c":1e-2}', {"a": 100.0, "b": 100.0, "c": 0.01}),
    (b'{"a":1.7976931348623157e308}', {"a": 1.7976931348623157e308}),
    (b'{"a":1e-400}', {"a": 0.0}),
    (b'{"a":123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
    (b'{"a":' + b"9" * 1000 + b"}", {"a": int("9" * 1000)}),
    (b'{"a":0.' + b"1" * 5000 + b"}", {"a": 0.1111111111111111}),
    (b'{"a":"\\u0041"}', {"a": "A"}),
    (b'{"\\u0061":1}', {"a": 1}),
    (b'{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t"}', {"a": '"\\/\b\f\n\r\t'}),
    (b'{"a":"\\u0000"}', {"a": "\0"}),
    (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
    (b'{"\\ud83d\\ude00":1}', {"😀": 1}),
    ('{"a":"grün 日本 😀"}'.encode(), {"a": "grün 日本 😀"}),
    ('{"a":"\u2028\u2029\x7f\x85\ufeff\uffff"}'.encode(), {"a": "\u2028\u2029\x7f\x85\ufeff\uffff"}),
    (b'{"a":"\xf4\x8f\xbf\xbf"}', {"a": "\U0010ffff"}),
    (b'{"a":{"b":1},"c":{"b":1}}', {"a": {"b": 1}, "c": {"b": 1}}),
    (b'{"a":1,"A":2,"\xc3\xa9":3,"e\xcc\x81":4}', {"a": 1, "A": 2, "é": 3, "e\u0301": 4}),
    (b'{"__proto__":1,"__class__":2}', {"__proto__": 1, "__class__": 2}),
    (b'{"a":"NaN","b":"Infinity","c":"[[[["}', {"a": "NaN", "b": "Infinity", "c": "[[[["}),
    (b'{"a":"' + b"x" * 60_000 + b'"}', {"a": "x" * 60_000}),
]

MALFORMED: list[bytes] = [
    # nothing, or not the text it should be
    b"",
    b" ",
    b" \t\r\n ",
    b"\x00",
    b"\xff",
    b'{"a":"\xe9"}',
    b'{"a":"\xc0\x80"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xf4\x90\x80\x80"}',
    b'{"a":"\xf0\x9f\x98"}',
    b"\xef\xbb\xbf{}",
    '{"n":5}'.encode("utf-16"),
    '{"n":5}'.encode("utf-16-le"),
    '{"n":5}'.encode("utf-16-be"),
    '{"n":5}'.encode("utf-32"),
    b"n=5",
    b"<n>5</n>",
    # white space that is none
    b"\x0c{}",
    b"\x0b{}",
    "\u00a0{}".encode(),
    "\u2003".encode(),
    # cut off, or too much
    b"{",
    b"}",
    b'{"a"',
    b'{"a":',
    b'{"a":1',
    b'{"a":1,',
    b'{"a":[1',
    b'{"a":"b',
    b'{"a":"b\\',
    b'{"a":"\\u00',
    b"{}{}",
    b"{} x",
    b"{}\x00",
    b"{},",
    b"{}}",
    b'{"a":1}\n{"a":2}',
    # not the grammar
    b"{,}",
    b'{"a":1,}',
    b'{,"a":1}',
    b'{"a":[1,]}',
    b'{"a":[,]}',
    b'{"a":[1 2]}',
    b'{"a":1 "b":2}',
    b'{"a" 1}',
    b'{"a"::1}',
    b'{"a":}',
    b"{:1}",
    b'{"a"}',
    b"{a:1}",
    b"{1:1}",
    b"{null:1}",
    b"{'a':1}",
    b"{\"a\":'b'}",
    b'{"a":[}]',
    b'{"a":1]',
    b'{/**/"a":1}',
    b'{"a":1} // end',
    b'{"a":undefined}',
    b'{"a":True}',
    b'{"a":None}',
    b'{"a":nul}',
    b'{"a":TRUE}',
    # numbers
    b'{"a":NaN}',
    b'{"a":nan}',
    b'{"a":Infinity}',
    b'{"a":-Infinity}',
    b'{"a":[1,[NaN]]}',
    b'{"a":1e400}',
    b'{"a":-1e400}',
    b'{"a":1e999999999999}',
    b'{"a":' + b"9" * 400 + b".0}",
    b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":-' + b"1" * 5000 + b"}",
    b'{"a":01}',
    b'{"a":-01}',
    b'{"a":00}',
    b'{"a":+1}',
    b'{"a":.5}',
    b'{"a":1.}',
    b'{"a":1.e2}',
    b'{"a":1e}',
    b'{"a":1e+}',
    b'{"a":-}',
    b'{"a":- 1}',
    b'{"a":0x1}',
    b'{"a":1_000}',
    b'{"a":1 000}',
    '{"a":\u0661}'.encode(),
    '{"a":1\u0661}'.encode(),
    '{"a":\uff11}'.encode(),
    # strings
    b'{"a":"\n"}',
    b'{"a":"\t"}',
    b'{"a":"\x00"}',
    b'{"a":"\x1f"}',
    b'{"\n":1}',
    b'{"a":"\\x41"}',
    b'{"a":"\\a"}',
    b'{"a":"\\u12"}',
    b'{"a":"\\u12g4"}',
    b'{"a":"\\U00000041"}',
    b'{"a":"\\ud800"}',
    b'{"a":"\\udc00"}',
    b'{"a":"\\udc00\\ud800"}',
    b'{"a":"\\ud83dx"}',
    b'{"a":[{"b":"\\udfff"}]}',
    b'{"\\ud800":1}',
    b'{"a":{"\\udfff":1}}',
    b'"\\ud800"',
    # one name twice
    b'{"a":1,"a":2}',
    b'{"a":1,"a":1}',
    b'{"a":1,"b":2,"a":3}',
    b'{"a":1,"\\u0061":2}',
    b'{"":1,"":2}',
    b'{"a":{"b":1,"b":2}}',
    b'{"a":[{"b":[{"c":1,"c":null}]}]}',
    b'[{"a":1,"a":2}]',
    # depth
    nested(DEEPEST_NESTING + 1),
    nested(DEEPEST_NESTING + 1, '{"a":', "}").replace(b":}", b":1}"),
    b"[" * 20_000,
    b'{"a":' * 20_000,
    b"[" * 20_000 + b"]" * 20_000,
]

INVALID: list[bytes] = [
    b"[]",
    b"[{}]",
    b'[{"n":5}]',
    b"null",
    b"true",
    b"false",
    b"0",
    b"-1.5e3",
    b'"n"',
    b'""',
    b' "{}" ',
    b"[1,2]",
    b"[" * DEEPEST_NESTING + b"]" * DEEPEST_NESTING,
]


def shown(body: Any) -> str:
    return ascii(body)[2:60]


@pytest.mark.parametrize(("body", "members"), ACCEPTED, ids=shown)
def test_a_json_object_is_read_as_it_stands(body: bytes, members: dict[str, Any]) -> None:
    """Values, types and the order of the members."""
    read = parse_object(body)
    assert read == members
    assert json.dumps(read) == json.dumps(members)


@pytest.mark.parametrize("body", MALFORMED, ids=shown)
def test_what_is_not_json_is_malformed(body: bytes) -> None:
    """400, with a sentence and without the cause, which would hold the body."""
    with pytest.raises(Malformed) as caught:
        parse_object(body)
    assert caught.value.detail.startswith("The body ")
    assert len(caught.value.detail) < 300
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("body", INVALID, ids=shown)
def test_json_that_is_no_object_is_invalid(body: bytes) -> None:
    """422: well-formed but wrong."""
    with pytest.raises(Invalid, match="must be a JSON object"):
        parse_object(body)


@pytest.mark.parametrize(("body", "word"), [(b"", "empty"), (b" \n", "empty"), ("\u2003".encode(), "not JSON")])
def test_an_empty_body_is_told_so(body: bytes, word: str) -> None:
    """With an example of what to send; white space of other scripts is not JSON's."""
    with pytest.raises(Malformed, match=word):
        parse_object(body)
