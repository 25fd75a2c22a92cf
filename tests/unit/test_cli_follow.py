"""What is told while a job is waited for: changes, once each, and never more than there is room for."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from aj.cli import follow
from aj.cli.follow import Follower
from aj.cli.terminal import Screen
from tests.support.waiting import wait_until


class Document:
    """A job, as far as it is looked at."""

    def __init__(self, **document: Any) -> None:
        self.document = document


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LIVE_EVERY_S", 0.005)
    monkeypatch.setattr(follow, "PLAIN_EVERY_S", 0.005)


def told(*documents: dict[str, Any], is_live: bool = False, until: Callable[[str], bool] = lambda _: True) -> str:
    """What a follower has written when it saw these, and `until` held after each of them."""
    stream = io.StringIO()
    with Follower(Screen(stream, is_terminal=is_live, is_live=is_live)) as follower:
        for document in documents:
            follower.saw(Document(**document))  # type: ignore[arg-type]
            wait_until(lambda: until(stream.getvalue()))
    return stream.getvalue()


def test_a_change_of_status_is_told_at_once() -> None:
    """Before any second has gone by."""
    assert told({"status": "queued", "position": 2}, {"status": "running"}) == "queued, position 2\nrunning\n"


def test_an_end_is_left_to_who_waits() -> None:
    """He has the result too."""
    assert told({"status": "running"}, {"status": "succeeded", "result": 5}) == "running\n"


def test_what_moves_within_a_status_is_told_at_the_next_second(quick: None) -> None:
    """A flood of reports is no flood of lines, and the last one before a pause is not lost."""
    reports = [{"status": "running", "progress": {"fraction": each / 1000}} for each in range(500)]
    stream = io.StringIO()
    with Follower(Screen(stream)) as follower:
        for report in reports:
            follower.saw(Document(**report))  # type: ignore[arg-type]
        wait_until(lambda: "running, 49 %\n" in stream.getvalue())
    assert stream.getvalue().startswith("running, 0 %\n")
    assert stream.getvalue().count("\n") < len(reports)


def test_an_estimate_that_moves_is_no_change(quick: None) -> None:
    """It would be told each time it is asked for."""
    document = {"status": "running", "eta_s": 9}
    text = told(
        document, {**document, "eta_s": 8}, {**document, "eta_s": 7, "progress": {"fraction": 1}}, until=_is_told
    )
    assert text.splitlines()[0] == "running, about 9 s left"
    assert "8 s" not in text


def _is_told(text: str) -> bool:
    return text.endswith("\n")


def test_a_line_that_is_drawn_again_is_gone_at_the_end(quick: None) -> None:
    """Nothing of it stands beside the result."""
    text = told({"status": "queued"}, {"status": "running"}, is_live=True)
    assert "\rqueued, 0 s\x1b[K\r" in text
    assert text.endswith("\r\x1b[K")
    assert "\n" not in text


@pytest.mark.parametrize("is_live", [True, False])
def test_that_the_api_is_away_is_told_while_it_is(quick: None, is_live: bool) -> None:
    """Once in a file, though it is asked again and again; then it goes on as before."""
    away, stream = [True], io.StringIO()
    half = Document(status="running", progress={"fraction": 0.5, "message": "half"}, eta_s=9)
    with Follower(Screen(stream, is_terminal=is_live, is_live=is_live), lambda: away[0]) as follower:
        follower.saw(half)  # type: ignore[arg-type]
        wait_until(lambda: f"50 %, {follow.AWAY}" in stream.getvalue())
        assert "left" not in stream.getvalue()
        away[0] = False
        wait_until(lambda: "50 %, half, about" in stream.getvalue())
    if not is_live:
        assert stream.getvalue() == f"running, 50 %, {follow.AWAY}\nrunning, 50 %, half, about 9 s left\n"


def test_a_screen_that_has_gone_stops_nobody(quick: None) -> None:
    """Talk that nobody hears is no reason to lose the result."""
    stream = io.StringIO()
    with Follower(Screen(stream)) as follower:
        stream.close()
        follower.saw(Document(status="running"))  # type: ignore[arg-type]
