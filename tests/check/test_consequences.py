"""A fault is named once: what can only be played where something else holds is skipped, and says where to look."""

from __future__ import annotations

import pytest

from aj.check.point import Level, State
from aj.check.points import ALL
from tests.check.playing import names, play

ASKS_FOR_NO_JOB = {"malformed-id", "cache-control", "problem-documents", "no-wait-in-vain"}


@pytest.mark.parametrize("fault", ["500 for each submission", "200 instead of 202"])
def test_where_nothing_is_accepted_only_that_is_named(fault: str) -> None:
    """At the highest level, over all points: the others need a job, or hold."""
    outcome = play(Level.COMPLETE, fault)
    assert set(names(outcome, State.BROKEN)) == {"accepted"}
    assert not outcome.unplayable
    skipped = names(outcome, State.SKIPPED)
    assert {"malformed-key", "repeated-key", "no-redirect-of-a-slash", "problem-documents"} <= set(skipped)


def test_an_error_for_a_malformed_id_is_named_once() -> None:
    """What else is asked of the answer to such an id is not judged."""
    outcome = play(
        Level.COMPLETE, "500 for malformed ids", points=[each for each in ALL if each.name in ASKS_FOR_NO_JOB]
    )
    assert set(names(outcome, State.BROKEN)) == {"malformed-id"}
    assert names(outcome, State.SKIPPED) == {"cache-control": "an id that was never given is not 404; see malformed-id"}
