"""The tree of errors: every problem says who it is, and nothing is said twice."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import hooksink.refusals
from aj import errors
from aj.errors import AjError, DeliveryFailed, FieldError, Invalid, JobDeleted, JobGone, NotReady, Problem, RateExceeded


def leaves(kind: type[Problem]) -> Iterator[type[Problem]]:
    """The problems below `kind` that `aj` and hooksink define."""
    for below in kind.__subclasses__():
        if below.__module__ in (errors.__name__, hooksink.refusals.__name__):
            yield below
            yield from leaves(below)


LEAVES = sorted(leaves(Problem), key=lambda leaf: leaf.__name__)


def made(leaf: type[Problem], detail: str) -> Problem:
    more: tuple[Any, ...] = {
        JobGone: ("2026-11-29T15:00:00.123Z",),
        JobDeleted: ("2026-11-29T15:00:00.123Z",),
        NotReady: ({"store": "is away"},),
        RateExceeded: (3, {"RateLimit": "x"}),
    }.get(leaf, ())
    return leaf(detail, *more)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_problem_has_slug_title_status_and_retryable(leaf: type[Problem]) -> None:
    """In the forms that an answer needs."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", leaf.slug)
    assert leaf.title
    assert not leaf.title.endswith(".")
    assert 400 <= leaf.status <= 599
    assert type(leaf.retryable) is bool


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_problem_keeps_its_detail(leaf: type[Problem]) -> None:
    """As an attribute and as the text of the exception."""
    problem = made(leaf, "n is 5; at most 4 are accepted")
    assert problem.detail == str(problem) == "n is 5; at most 4 are accepted"


def test_no_two_problems_share_a_slug_or_a_title() -> None:
    """A client that knows the slug knows the problem."""
    assert len({leaf.slug for leaf in LEAVES}) == len(LEAVES)
    assert len({leaf.title for leaf in LEAVES}) == len(LEAVES)


@pytest.mark.parametrize("leaf", LEAVES)
def test_what_may_be_retried_unchanged_is_what_the_server_lacks(leaf: type[Problem]) -> None:
    """429 and 503 may be tried again; a wrong request stays wrong."""
    assert leaf.retryable is (leaf.status in (429, 503))


def test_a_gone_job_says_when_it_expired() -> None:
    """The one extra member of that problem."""
    assert JobGone("gone", "2026-11-29T15:00:00.123Z").expired_at == "2026-11-29T15:00:00.123Z"


def test_an_invalid_submission_says_where() -> None:
    """With none or many places."""
    assert Invalid("wrong").errors == ()
    places = (FieldError("#/n", "is missing"), FieldError("#/m", "is unknown"))
    assert Invalid("wrong", places).errors == places


def test_a_failed_delivery_has_a_kind_and_a_text() -> None:
    """The kind is for programs, the text for people."""
    failed = DeliveryFailed("timeout", "no answer within 15 s")
    assert (failed.kind, str(failed)) == ("timeout", "no answer within 15 s")


def test_every_error_is_one_of_ours() -> None:
    """One `except AjError` catches whatever is raised on purpose."""
    defined = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, BaseException)]
    assert all(issubclass(each, AjError) for each in defined)


def test_the_tree_at_the_top_of_the_file_is_complete() -> None:
    """Every class stands there, below its own status where it has one."""
    drawn = errors.__doc__ or ""
    for _, each in inspect.getmembers(errors, inspect.isclass):
        if not issubclass(each, AjError):
            continue
        line = next((line for line in drawn.splitlines() if re.search(rf"\b{each.__name__}\b", line)), "")
        assert line, each.__name__
        if issubclass(each, Problem) and each is not Problem:
            assert str(each.status) in line, each.__name__
