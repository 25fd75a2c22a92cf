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
        ('title = "mine"', 'title = "mine"\nname = "other"', "name is not known"),
        ('succeeded = ["true"]', 'succeeded = ["true", ""]', "words.succeeded has an empty word"),
        ('queued = ["waiting"]', 'queued = [" "]', "words.queued has an empty word"),
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
        ('title = "mine"', 'title = " "', "title must not be empty"),
        ('title = "mine"', "title = " + "[" * 9999, "nested too deeply"),
        ("body = { n = 5 }", "body = { n = nan }", "submit.body cannot be sent as JSON"),
        ("body = { n = 5 }", "body = { n = 2026-11-30 }", "submit.body cannot be sent as JSON"),
        ('path = "/tasks"', 'path = "/my tasks"', "submit.path must be visible ASCII"),
        ('path = "/tasks"', r'path = "/tasks\nHost: elsewhere"', "submit.path must be visible ASCII"),
        ('path = "/tasks"', 'path = "/tasks%2"', "submit.path must be visible ASCII"),
        ('path = "/tasks"', 'path = "/tasks#part"', "submit.path must be visible ASCII"),
        ('path = "/tasks"', 'path = "/tasks/{id}"', "submit.path has {id} in it, which stands for nothing"),
        ('path = "/tasks/{id}"', 'path = "/{kind}/{id}"', "job.path has {kind} in it"),
        ("[job]", 'slow_path = "rest"\n[job]', "submit.slow_path must begin with /"),
        ("[job]", 'method = "PO ST"\n[job]', "submit.method must be letters"),
        ("[job]", r'method = "POST\n"' + "\n[job]", "submit.method must be letters"),
        ("[job]", 'location = "Where:"\n[job]', "submit.location must be letters"),
        ("[job]", 'headers = { "A b" = "c" }\n[job]', "submit.headers has 'A b'"),
        ("[job]", r'headers = { A = "b\r\nC: d" }' + "\n[job]", "submit.headers has 'A', whose value must be visible"),
        ("[job]", 'headers = { Host = "b" }\n[job]', "submit.headers has 'Host', which is a field"),
        ("[job]", "accepted = []\n[job]", "submit.accepted must be statuses from 200 to 299"),
        ("[job]", "accepted = [202, 302]\n[job]", "submit.accepted must be statuses from 200 to 299"),
        ("[job]", "invalid = []\n[job]", "submit.invalid must be statuses from 400 to 499"),
        ("[job]", "invalid = [1000]\n[job]", "submit.invalid must be statuses from 400 to 499"),
        ("[job]", "too_large_bytes = 0\n[job]", "submit.too_large_bytes must be from 1 to 104857600"),
        ("[job]", "too_large_bytes = -1\n[job]", "submit.too_large_bytes must be from 1 to 104857600"),
        ("[job]", "too_large_bytes = 104857601\n[job]", "submit.too_large_bytes must be from 1 to 104857600"),
        ("[job]", 'id = "a..b"\n[job]', "submit.id must be names with single dots"),
        ("[job]", 'members = [""]\n[job]', "submit.members has an entry that must not be empty"),
        ('status = "state.name"', 'status = ""', "job.status must be names with single dots"),
        ('result = "value"', 'result = ".value"', "job.result must be names with single dots"),
        ('result = "value"', 'result = "value"\ntimes = ["at."]', "job.times has an entry that must be names"),
        ("[words]", '[headers]\nidempotency = "My Key"\n[words]', "headers.idempotency must be letters"),
        ("[words]", '[headers]\napi_key = "My Key: {key}"\n[words]', "headers.api_key must be a field with {key}"),
        ("[words]", '[headers]\napi_key = "Key: {key}\\u0007"\n[words]', "headers.api_key must be a field with {key}"),
        (
            "[words]",
            '[paths]\ncancel = "DE LETE /{id}"\n[words]',
            "paths.cancel has a method before its path, which must be letters",
        ),
        ("[words]", '[paths]\ncancel = "DELETE {id}"\n[words]', "paths.cancel must begin with /"),
        ("[words]", '[paths]\ndelete = "DELETE /{id}"\n[words]', "paths.delete must begin with /"),
        ("[words]", '[paths]\nhealth = ["/a", "b"]\n[words]', "paths.health has an entry that must begin with /"),
        ("[words]", '[paths]\nlist_member = ""\n[words]', "paths.list_member must be names"),
        ("[words]", '[not_offered]\nwait = ""\n[words]', "not_offered has 'wait' without a reason"),
    ],
)
def test_a_wrong_profile_is_refused_with_what_is_wrong(old: str, new: str, said: str) -> None:
    """One line, which names the profile and the member."""
    with pytest.raises(CheckError) as caught:
        parse("mine", GOOD.replace(old, new, 1))
    assert str(caught.value).startswith("profile mine: ")
    assert said in str(caught.value)


def test_a_word_that_the_first_answer_has_to_say_must_be_known() -> None:
    """Else no answer could be right."""
    text = GOOD.replace('queued = ["waiting"]', "").replace("[job]", 'status = "state"\n[job]')
    with pytest.raises(CheckError, match=r"words\.queued must have a word"):
        parse("mine", text)


def test_an_empty_text_says_that_there_is_none() -> None:
    """Also where the default is another one."""
    profile = parse("mine", GOOD.replace("[job]", 'id = ""\nlocation = ""\n[job]'))
    assert (profile.submit.id, profile.submit.location) == ("", "")


def test_a_member_is_found_by_its_path() -> None:
    """Be it null; and nowhere is nothing."""
    document = {"a": {"b": None}, "c": [1]}
    assert has(document, "a.b")
    assert at(document, "a.b") is None
    assert not has(document, "a.c")
    assert not has(document, "c.0")
    assert at(None, "a.b") is None


@pytest.mark.parametrize(
    ("path", "address", "job_id"),
    [
        ("/tasks/{id}", "http://a/tasks/17", "17"),
        ("/tasks/{id}", "http://a/prefix/tasks/17", "17"),
        ("/v1/tasks/{id}/status", "http://a/v1/tasks/17/status", "17"),
        ("/status?id={id}", "http://a/status?id=17", "17"),
        ("/tasks/{id}", "http://a/tasks/a%3Ab", "a:b"),
        ("/tasks/{id}", "http://a/elsewhere/17/", "17"),
        ("/tasks/{id}", "", ""),
    ],
)
def test_the_id_stands_in_an_address_where_the_path_of_a_job_has_it(path: str, address: str, job_id: str) -> None:
    """Behind any prefix; an address of another form has it at its end."""
    assert parse("mine", GOOD.replace("/tasks/{id}", path)).id_at(address) == job_id
