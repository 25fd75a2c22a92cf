"""What is shown of an exchange: enough to see, no secret, nothing that a terminal obeys."""

from __future__ import annotations

import json

from aj.check.exchange import SHOWN_BODY_LENGTH, SHOWN_VALUE_LENGTH, Answer, Exchange, Request


def _shown(request: Request, answer: Answer) -> str:
    return "\n".join(Exchange(request, answer, "", 0.0).shown())


def test_an_exchange_is_shown_as_it_was() -> None:
    """The request behind `>`, the answer behind `<`."""
    request = Request("POST", "http://127.0.0.1:1/jobs?a=b", (("Content-Type", "application/json"),), b'{"n": 5}')
    answer = Answer(202, "Accepted", (("Location", "/jobs/1"),), b'{"job_id": "1"}')
    assert _shown(request, answer).splitlines() == [
        "> POST /jobs?a=b",
        "> Content-Type: application/json",
        "> ",
        '> {"n": 5}',
        "< 202 Accepted",
        "< Location: /jobs/1",
        "< ",
        '< {"job_id": "1"}',
    ]


def test_no_api_key_is_shown() -> None:
    """Neither in the fields that hold one nor where a server says it again."""
    fields = (("Authorization", "Bearer hush"), ("X-Mine", "hush"))
    shown = _shown(Request("GET", "http://a/?k=hush", fields, hides="hush"), Answer(200, "OK", (), b"you said hush"))
    assert "hush" not in shown


def test_no_part_of_an_api_key_is_shown_where_a_text_is_cut() -> None:
    """What is hidden is taken out first: a cut through the key would leave its beginning to be read."""
    key = "q" * 40
    for before in range(SHOWN_VALUE_LENGTH - 40, SHOWN_VALUE_LENGTH + 1):
        shown = _shown(Request("GET", "http://a/", hides=key), Answer(200, "OK", (("A", "." * before + key),), b""))
        assert "q" not in shown
    for before in (SHOWN_BODY_LENGTH - 39, SHOWN_BODY_LENGTH - 1, 4 * SHOWN_BODY_LENGTH - 1):
        body = b"." * before + key.encode() * 1000
        assert "q" not in _shown(Request("POST", "http://a/", (), body, hides=key), Answer(200, "OK", (), body))


def test_no_api_key_is_shown_as_json_spells_it() -> None:
    """A quotation mark in it is escaped there."""
    body = json.dumps({"you": 'hu"sh'}).encode()
    assert "sh" not in _shown(Request("GET", "http://a/", hides='hu"sh'), Answer(200, "OK", (), body))


def test_what_is_long_is_cut() -> None:
    """And its length is said."""
    shown = _shown(Request("GET", "http://a/"), Answer(200, "OK", (("A", "x" * 5000),), b"y" * 5000))
    assert len(shown) < 2 * SHOWN_BODY_LENGTH
    assert "(5000 bytes)" in shown
    assert "(5000 characters)" in shown


def test_no_control_character_reaches_the_terminal() -> None:
    """Colours, bells, line ends and marks of direction are shown as escapes."""
    shown = _shown(
        Request("GET", "http://a/"),
        Answer(200, "\x1b[31mOK", (("A", "b\x07c\u202e"),), "d\r\ne\x1b]0;title\x07\u2028\x9b".encode()),
    )
    assert not [each for each in shown if not each.isprintable() and each != "\n"]
    assert r"\x1b[31mOK" in shown
    assert r"d\r\ne" in shown
