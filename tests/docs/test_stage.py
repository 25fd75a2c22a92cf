"""The stage on which pages are played sees what is not as the page says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.markdown import Block
from tests.support.stage import Stage, fits

ONE, OTHER = "01a2287f-c369-711d-afda-81b5c40a3350", "01a22875-8ab0-7b86-a00f-efef3fad16ff"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """One without a store, which these commands do not need."""
    made = Stage(tmp_path, "redis://127.0.0.1:1/0", {})
    yield made
    made.leave()


def console(text: str, *words: str) -> Block:
    return Block("page.md", 1, ("console", *words), text)


@pytest.mark.parametrize(
    ("said", "page"),
    [
        ("a\nb", "a\nb"),
        ("a\r\nDate: today\r\nb", "a\nb"),
        (f"job {ONE}, 2026-11-30T03:00:00.123Z", f"job {OTHER}, 2026-01-01T00:00:00.000Z"),
        ('{"a": 1, "b": 2, "c": 3}', '{…, "c": 3}'),
        ("a\nb\nc", "…\nc"),
        ("a\nb\nc", "a\n…"),
        ("a\nb\nc", "…"),
        ("2 passed in 1.24s", "2 passed in 0.3s"),
    ],
)
def test_what_differs_from_run_to_run_is_as_the_page_says(said: str, page: str) -> None:
    """Ids, times, headers that are left out, and what stands for anything."""
    assert fits(said, page)


@pytest.mark.parametrize(
    ("said", "page"), [("a", "b"), ("a\nb", "a"), ("a\nb", "a…"), ("a\nb\nc", "…\nb"), ("a.c", "abc")]
)
def test_another_text_is_not(said: str, page: str) -> None:
    """Also where only a line is missing, or one too many."""
    assert not fits(said, page)


def test_a_command_that_fails_or_says_something_else_is_found(stage: Stage) -> None:
    """Once where it changes something, since it is not repeated then."""
    stage.play(console("$ echo one > new.txt; cat new.txt\none\n"))
    with pytest.raises(AssertionError, match="instead of"):
        stage.play(console("$ echo one > new.txt; cat new.txt\ntwo\n"))
    with pytest.raises(AssertionError, match="ended with 3"):
        stage.play(console("$ echo > new.txt; exit 3\n"))


def test_a_name_that_means_another_thing_the_second_time_is_found(stage: Stage) -> None:
    """An id of the page stands for one job, from the first time that it is printed."""
    stage.play(console(f"$ echo {ONE} > new.txt; cat new.txt\n{OTHER}\n"))
    assert stage.real(OTHER) == ONE
    with pytest.raises(AssertionError, match="instead of"):
        stage.play(console(f"$ : > new.txt; echo {ONE.replace('a3350', 'a3351')}\n{OTHER}\n"))


def test_exports_last_in_the_first_terminal_and_go_to_no_other(stage: Stage) -> None:
    """As they would for its reader."""
    stage.play(console("$ export SEEN=yes\n$ mkdir -p below\n$ echo $SEEN\nyes\n"))
    stage.start(console('$ echo "listening, $SEEN"; exec sleep 60\n', "terminal", "other"))
    stage.look(console("listening,\n", "shows", "other"))
    assert "yes" not in stage.logs()


def test_a_terminal_that_ends_at_once_is_found(stage: Stage) -> None:
    """Its reader would wait for ever."""
    with pytest.raises(AssertionError, match="no such thing"):
        stage.start(console("$ echo no such thing; exit 1\n", "terminal", "other"))
