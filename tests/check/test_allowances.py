"""What the contract allows is told as no fault: it holds, or is skipped with what would be needed."""

from __future__ import annotations

import dataclasses

import pytest

from aj.check.exchange import Answer, Exchange, Request
from aj.check.lifetime import life_over
from aj.check.point import Level, State
from aj.check.points import ALL
from aj.check.run import Outcome, run
from aj.check.scene import Scene
from tests.check.door import serving
from tests.check.playing import names, options

PAST, FUTURE = "2026-01-01T00:00:00.000Z", "9999-01-01T00:00:00.000Z"


def _played(*allowed: str, timeout_s: float = 10.0, only: tuple[str, ...]) -> Outcome:
    with serving(*allowed) as url, Scene(dataclasses.replace(options(url), timeout_s=timeout_s)) as scene:
        return run(scene, [each for each in ALL if each.name in only], Level.COMPLETE, lambda _: None)


@pytest.mark.parametrize(
    ("allowed", "only"),
    [
        (
            "words in capitals",
            (
                "json-document",
                "cache-control",
                "wait-on-job",
                "wrong-media-type",
                "problem-documents",
                "webhook-arrives",
            ),
        ),
        ("large results", ("result-only-at-the-end", "webhook-says-what-the-job-says", "bare-result")),
        ("kept for ever", ("times", "end-is-final")),
        ("small bodies only", ("deep-nesting",)),
    ],
)
def test_what_is_allowed_holds(allowed: str, only: tuple[str, ...]) -> None:
    """Letters of either case, a result that a webhook leaves out, a document without its end, a small limit."""
    outcome = _played(allowed, only=only)
    assert names(outcome, State.HELD).keys() == set(only), outcome


def test_a_submission_that_was_held_to_its_end_may_be_202() -> None:
    """No worker runs, or the job takes longer: the contract has the plain 202 for it."""
    outcome = _played("nobody is quick", timeout_s=3.0, only=("wait-on-submission",))
    why = names(outcome, State.SKIPPED)["wait-on-submission"]
    assert "the job did not end within 1 s" in why


def test_a_slow_job_that_ends_at_once_shows_nothing() -> None:
    """Whether it can be cancelled, forgotten or asked for its result before its end."""
    only = ("cancel", "cancel-again", "delete-active", "bare-result")
    outcome = _played("nobody is slow", only=only)
    skipped = names(outcome, State.SKIPPED)
    assert skipped.keys() == set(only), outcome
    for name in {*only} - {"cancel-again"}:
        assert "the slow job ended too soon" in skipped[name]


def test_metadata_that_is_too_large_for_any_body_is_not_judged() -> None:
    """An API may say 413 before it looks at what is in a body."""
    outcome = _played("small bodies only", only=("metadata-limits",))
    assert "the API takes no body of 4" in names(outcome, State.SKIPPED)["metadata-limits"]


def test_a_job_that_is_past_its_life_is_not_judged() -> None:
    """It is 410 from then on, whatever is asked of it."""
    outcome = _played("a short life", only=("end-is-final", "not-modified", "head", "bare-result"))
    assert names(outcome, State.BROKEN) == {}
    assert "the result of a job lived only until" in names(outcome, State.SKIPPED)["end-is-final"]


@pytest.mark.parametrize(
    ("status", "url", "moment", "is_over"),
    [
        (410, "http://a/jobs/17", PAST, True),
        (410, "http://a/jobs/17/result", PAST, True),
        (410, "http://a/jobs/17", FUTURE, False),
        (410, "http://a/jobs/17", None, False),
        (410, "http://a/jobs/17", "soon", False),
        (410, "http://a/jobs/17", "0001-01-01", False),
        (410, "http://a/jobs/18", PAST, False),
        (404, "http://a/jobs/17", PAST, False),
    ],
)
def test_a_life_is_over_when_its_document_said_so(status: int, url: str, moment: object, is_over: bool) -> None:
    """Another answer than 410, one before that time, and one about another job are faults."""
    exchange = Exchange(Request("GET", url), Answer(status, "", (), b""), "", 0.0)
    assert bool(life_over([exchange], {"17": moment})) is is_over
