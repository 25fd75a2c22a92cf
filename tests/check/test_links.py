"""The links of an answer: every form that RFC 8288 allows, and what is none of them in a bounded time."""

from __future__ import annotations

import pytest

from aj.check.links import MOST_CHARACTERS, link_to


@pytest.mark.parametrize(
    "field",
    [
        '</b>; rel="next"',
        "</b>;rel=next",
        '</b> ; REL = "Next"',
        '</b>; title="a, b"; rel="next"',
        '</b>; title="<x>; rel=prev"; rel="next"',
        r'</b>; title="a \" b"; rel="next"',
        '</b>; rel="last next"; rel="prev"',
        '</a>; rel="prev", </b>; rel="next", </c>; rel="next"',
        '</a>, </b>; crossorigin; rel="next"',
        '</a>; title="rel=next", , </b>;; rel="next";',
    ],
)
def test_the_next_page_is_found(field: str) -> None:
    """With white space where it may be, with other parameters and other links beside it."""
    assert link_to("next", field) == "/b"


@pytest.mark.parametrize(
    "field", ["", "</b>", '</b>; rel="prev"', '</b>; title="next"', '</b>; rel="prev"; rel="next"']
)
def test_another_link_is_not_taken_for_it(field: str) -> None:
    """Nor one that says its relation twice, of which the first counts."""
    assert link_to("next", field) is None


@pytest.mark.parametrize("piece", ["<", "<a", '<>;a="', ";", "<>; ", "<>;rel= ", '<>;a="\\"', ",", "<>,", " "])
def test_nonsense_ends_without_a_link(piece: str) -> None:
    """However often it is said; what stands behind the bound is not read."""
    assert link_to("next", piece * (6_000_000 // len(piece))) is None
    assert link_to("next", "," * MOST_CHARACTERS + '</b>; rel="next"') is None
