"""Texts of a server on a terminal: harmless, measured, cut."""

from __future__ import annotations

import json

import pytest

from aj.cli.text import columns, cut, duration, json_text, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("half of it", "half of it"),
        ("grün ✓ 漢字", "grün ✓ 漢字"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("one\ntwo\r\tthree", r"one\ntwo\r\tthree"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202eevil", r"\u202eevil"),
        ("a\u2028b\x7f", r"a\u2028b\x7f"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_could_steer_a_terminal_is_written_out(text: str, shown: str) -> None:
    """Controls of C0 and C1, turns of direction, ends of lines, halves of pairs, invisible tags; nothing else."""
    assert plain(text) == shown


@pytest.mark.parametrize(
    "value", ["\x1b[2J", "\x9b\u202e\u2028\x7f", "\ud800", {"\x9b": ["grün", 1.5, None, "\U000e0041"]}]
)
def test_json_on_a_terminal_is_harmless_and_the_same_value(value: object) -> None:
    """What is escaped reads back as it was."""
    text = json_text(value)
    assert plain(text) == text
    assert json.loads(text) == value


def test_json_keeps_what_can_be_read() -> None:
    """Escapes are for what harms, or for a stream that cannot write more."""
    assert json_text("grün") == '"grün"'
    assert json_text("grün", only_ascii=True) == r'"gr\u00fcn"'


@pytest.mark.parametrize(
    ("text", "taken"), [("abc", 3), ("漢字", 4), ("é", 1), ("e\u0301", 1), ("❤\ufe0f", 2), ("", 0)]
)
def test_columns_are_counted_as_a_terminal_counts_them(text: str, taken: int) -> None:
    """Wide characters take two, marks that combine take none."""
    assert columns(text) == taken


@pytest.mark.parametrize(
    ("text", "most", "left"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("漢字漢字", 5, "漢字…"),
        ("漢字漢字", 4, "漢…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_what_is_cut_never_takes_more_than_its_room(text: str, most: int, left: str) -> None:
    """And says that it is cut."""
    assert cut(text, most) == left
    assert columns(left) <= most


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.9, "0 s"), (-3, "0 s"), (99, "99 s"), (100, "1:40"), (3600, "1:00:00"), (7325.9, "2:02:05")],
)
def test_a_duration_is_said_as_people_say_it(seconds: float, said: str) -> None:
    """Seconds up to a hundred, then minutes, then hours."""
    assert duration(seconds) == said
