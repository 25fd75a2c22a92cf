"""What is typed after `aj submit` becomes the members of a JSON body."""

from __future__ import annotations

from typing import Any

import click
import pytest

from aj.cli.values import body_of, members, mistaken, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("null", None),
        ('"5"', "5"),
        ("[64, 256]", [64, 256]),
        ('{"a": {}}', {"a": {}}),
        ("summer", "summer"),
        ("", ""),
        ("01234", "01234"),
        ("True", "True"),
        ("[64, 256", "[64, 256"),
        ("a=b", "a=b"),
    ],
)
def test_a_value_is_json_where_it_reads_as_json_and_else_text(text: str, value: Any) -> None:
    """Numbers, words, lists and objects; whatever is no JSON stays as it was typed."""
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", '{"a": 1, "a": 2}', "[" * 100_000, "9" * 5000])
def test_what_only_lax_readers_take_for_json_is_text(text: str) -> None:
    """So nothing is sent that the API would call malformed."""
    assert value_of(text) == text


def test_a_text_is_never_read_as_json() -> None:
    """For values that a script does not know beforehand."""
    assert members(["n=5"], ["zip=01234", "code=5", "flag=true"]) == {
        "n": 5,
        "zip": "01234",
        "code": "5",
        "flag": "true",
    }


@pytest.mark.parametrize("pair", ["n", "=5", ""])
def test_a_pair_without_a_name_or_a_sign_is_refused(pair: str) -> None:
    """The message shows what was typed."""
    with pytest.raises(click.UsageError, match="is no NAME=VALUE") as caught:
        members([pair])
    assert repr(pair) in caught.value.message


def test_a_name_given_twice_is_refused() -> None:
    """Nobody can tell which one was meant."""
    with pytest.raises(click.UsageError, match="twice"):
        members(["n=5"], ["n=6"])


def test_bytes_that_are_no_text_are_refused() -> None:
    """They come as halves of pairs from the shell, and JSON cannot hold them."""
    with pytest.raises(click.UsageError, match="not UTF-8"):
        members([b"n=\xff".decode("utf-8", "surrogateescape")])


def test_a_body_is_one_object() -> None:
    """As it stands in the file."""
    assert body_of('{"n": 5, "name": "grün"}'.encode()) == {"n": 5, "name": "grün"}


@pytest.mark.parametrize(
    "data", [b"", b"5", b"[]", b'{"n": 1} x', b'{"n": NaN}', b'{"n": 1, "n": 2}', b"\xff{}", b"[" * 99_999]
)
def test_a_body_that_is_no_object_of_json_is_refused(data: bytes) -> None:
    """Before anything is sent."""
    with pytest.raises(click.UsageError):
        body_of(data)


def test_a_task_that_stands_where_a_parameter_does_is_told_its_option() -> None:
    """`aj submit report` is what one types first."""
    with pytest.raises(click.UsageError, match=r"--task report$"):
        members(["report", "n=5"])
    with pytest.raises(click.UsageError, match=r"is no NAME=VALUE$"):
        members(["two words"])


WANTED = "Input should be a valid string"


@pytest.mark.parametrize(
    ("pair", "pointer", "detail", "is_found"),
    [
        ("region=2026", "#/region", WANTED, True),
        ("flag=true", "#/flag/str", WANTED, True),
        ("tags=[1]", "#/tags", WANTED, True),
        ("a/b=1", "#/a~1b", WANTED, True),
        ("tags=[1]", "#/tags/0", WANTED, False),
        ("region=2026", "#/other", WANTED, False),
        ("region=2026", "#/regions", WANTED, False),
        ("region=2026", "#/region", "Input should be at most 5", False),
        ("region=north", "#/region", "String should have at most 3 characters, a string", False),
    ],
)
def test_a_value_that_was_read_as_json_where_text_is_wanted_is_found(
    pair: str, pointer: str, detail: str, is_found: bool
) -> None:
    """Only where it is itself what the API objects to."""
    found = mistaken(members([pair]), [pair], [{"pointer": pointer, "detail": detail}, {"pointer": 5}])
    assert found == ([pair] if is_found else [])
