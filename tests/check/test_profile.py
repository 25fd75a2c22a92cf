"""Profiles: those that come along can be read, and one that is wrong is refused with the member that is."""

from __future__ import annotations

import pytest

from aj.check.profile import at, has, load, parse, shipped
from aj.errors import CheckError

GOOD = """
title = "mine"
[submit]
path = "/tasks"
body = { n = 5 }
[job]
path = "/tasks/{id}"
status = "state.name"
result = "value"
[words]
queued = ["waiting"]
succeeded = ["true"]
"""


@pytest.mark.parametrize("name", shipped())
def test_a_profile_that_comes_along_can_be_read(name: str) -> None:
    """And says what it is of."""
    assert load(name).title


def test_a_profile_maps_words() -> None:
    """Also those of a member inside another, and a truth value."""
    profile = parse("mine", GOOD)
    assert profile.status_of({"state": {"name": "waiting"}}) == "queued"
    assert profile.status_of({"state": {"name": True}}) == "succeeded"
    assert profile.status_of({"state": {"name": "lost"}}) is None
    assert profile.status_of({"state": 5}) is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "mine"', "title = ", "not TOML"),
        ('title = "mine"', "", "title is missing"),
        ('title = "mine"', 'titel = "mine"', "titel is not known"),
        ('path = "/tasks"', "", "submit.path is missing"),
        ('path = "/tasks"', "path = 5", "submit.path must be a string"),
        ('path = "/tasks"', 'path = "/tasks"\naccepted = [true]', "submit.accepted must be a list of numbers"),
        ('path = "/tasks"', 'path = "/tasks"\nheaders = { a = 5 }', "submit.headers must be a table of strings"),
        ('path = "/tasks"', 'path = "tasks"', "must begin with /"),
        ('path = "/tasks/{id}"', 'path = "/tasks"', "must have {id}"),
        ('result = "value"', "", "either result"),
        ('result = "value"', 'result = "value"\nresult_path = "/{id}"', "either result"),
        ('queued = ["waiting"]', 'waiting = ["waiting"]', "words must be a table of queued"),
        ('queued = ["waiting"]', 'queued = ["true"]', "one word twice"),
        ('succeeded = ["true"]', "", "words.succeeded must have"),
        ('succeeded = ["true"]', "succeeded = [true]", "words.succeeded must be a list of strings"),
        ("[words]", '[headers]\napi_key = "X-Key"\n[words]', "headers.api_key must be a field with {key}"),
        ("[job]", "[[job]]", "job must be a table"),
    ],
)
def test_a_wrong_profile_is_refused_with_what_is_wrong(old: str, new: str, said: str) -> None:
    """One line, which names the profile and the member."""
    with pytest.raises(CheckError) as caught:
        parse("mine", GOOD.replace(old, new, 1))
    assert str(caught.value).startswith("profile mine: ")
    assert said in str(caught.value)


def test_a_member_is_found_by_its_path() -> None:
    """Be it null; and nowhere is nothing."""
    document = {"a": {"b": None}, "c": [1]}
    assert has(document, "a.b")
    assert at(document, "a.b") is None
    assert not has(document, "a.c")
    assert not has(document, "c.0")
    assert at(None, "a.b") is None
