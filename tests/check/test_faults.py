"""Servers with one fault each: it is found, and named by just the points that it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from aj.check.point import Level, Point, State
from aj.check.points import ALL, webhooks
from aj.check.run import Outcome
from tests.check.faults import FAULTS
from tests.check.playing import names, play

AT_A_TIME = 8


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Future[Outcome]]]:
    """What was found of each fault: played side by side, since most of the time jobs are waited for."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(AT_A_TIME) as pool:
        patch.setattr(webhooks, "QUIET_S", 0.3)
        yield {fault: pool.submit(play, level, fault, points=_of(level)) for fault, (level, _) in FAULTS.items()}
        pool.shutdown(cancel_futures=True)


def _of(level: Level) -> list[Point]:
    """The points that can be expected to show a fault of this level; races take long, and show none of the complete."""
    return [each for each in ALL if (each.level is Level.COMPLETE) == (level is Level.COMPLETE)]


def test_a_server_without_a_fault_holds_every_point() -> None:
    """Nothing is broken, skipped or not applicable: what is said of the others is their fault."""
    outcome = play(Level.COMPLETE)
    found = {each.point.name: each.why for each in outcome.findings if each.state is not State.HELD}
    assert (found, outcome.unplayable) == ({}, "")
    assert len(outcome.findings) == len(ALL)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_by_the_points_that_it_breaks(outcomes: dict[str, Future[Outcome]], fault: str) -> None:
    """By all of these and by no other; each shows an exchange."""
    outcome = outcomes[fault].result()
    broken = names(outcome, State.BROKEN)
    assert set(broken) == FAULTS[fault][1], broken
    assert not outcome.unplayable
    for finding in outcome.findings:
        assert finding.exchanges or finding.state is State.SKIPPED


def test_a_pointer_that_is_no_part_of_an_address_is_shown_beside_the_right_one(
    outcomes: dict[str, Future[Outcome]],
) -> None:
    """RFC 9457 wants a fragment, and the bare pointer is what is easily taken for it."""
    why = names(outcomes["pointers without #"].result(), State.BROKEN)["pointers"]
    assert "the pointer is /no_such_member, where #/no_such_member is right" in why


def test_every_point_has_a_fault_that_breaks_it() -> None:
    """No point holds whatever the server does."""
    broken = set().union(*(points for _, points in FAULTS.values()))
    assert sorted({each.name for each in ALL} - broken) == []
