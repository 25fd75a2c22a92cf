"""Who waits for a job that nobody runs is told so, once."""

from __future__ import annotations

import io

import pytest

from aj.cli import doubt
from aj.cli.follow import Follower
from aj.cli.terminal import Screen
from tests.support.scripted_server import answer, scripted
from tests.support.waiting import wait_until
from tests.unit.test_cli_follow import Document
from tests.unit.test_client_retries import UNREADY

READY, LOST = answer(200, {"status": "ready"}), answer(404, b"<h1>Lost?</h1>")
NOBODY = answer(503, UNREADY)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubt, "FIRST_S", 0.01)
    monkeypatch.setattr(doubt, "AGAIN_S", 0.01)


def test_what_the_api_lacks_is_told_once() -> None:
    """Asked again while all is well and while it does not answer; the key is shown to nobody for that."""
    stream = io.StringIO()
    with scripted(READY, b"", NOBODY) as server, Follower(Screen(stream)) as follower:
        follower.saw(Document(status="queued"))  # type: ignore[arg-type]
        follower.doubt(f"{server.url}/api/jobs/1")
        wait_until(lambda: "readyz" in stream.getvalue(), what="the hint")
    said = f"aj: it may wait for long: {server.url}/api/readyz says: workers: no worker is alive for q:jobs2"
    assert stream.getvalue().splitlines() == ["queued", said]
    assert {each.path for each in server.asked} == {"/api/readyz"}
    assert all("authorization" not in each.headers for each in server.asked)


def test_it_takes_the_place_of_a_line_that_is_drawn_again() -> None:
    """So that nothing of that line stands beside it."""
    stream = io.StringIO()
    with scripted(NOBODY) as server, Follower(Screen(stream, is_terminal=True, is_live=True)) as follower:
        follower.saw(Document(status="queued"))  # type: ignore[arg-type]
        follower.doubt(f"{server.url}/jobs/1")
        wait_until(lambda: "readyz" in stream.getvalue(), what="the hint")
    assert "\r\x1b[Kaj: it may wait for long" in stream.getvalue()


def test_of_a_long_reason_the_beginning_is_told() -> None:
    """No API fills somebody's terminal."""
    stream = io.StringIO()
    with scripted(answer(503, UNREADY | {"detail": "long " * 100_000})) as server, Follower(Screen(stream)) as follower:
        follower.saw(Document(status="queued"))  # type: ignore[arg-type]
        follower.doubt(f"{server.url}/jobs/1")
        wait_until(lambda: "readyz" in stream.getvalue(), what="the hint")
    said = stream.getvalue().partition("says: ")[2]
    assert said == ("long " * 100)[:300] + "…\n"


def test_an_api_that_does_not_tell_is_not_asked_again() -> None:
    """It may be one of another kind."""
    with scripted(LOST, NOBODY) as server:
        stream = io.StringIO()
        with Follower(Screen(stream)) as follower:
            follower.saw(Document(status="queued"))  # type: ignore[arg-type]
            asking = doubt.Doubt(f"{server.url}/jobs/1", lambda: True, follower._remark, follower._over)
            asking._ask()  # it ends by itself
        assert len(server.asked) == 1
        assert stream.getvalue() == "queued\n"


def test_a_job_that_runs_raises_no_doubt() -> None:
    """Nothing is asked for it."""
    looks: list[str] = []

    def is_queued() -> bool:
        looks.append("a look")
        return False

    with scripted(NOBODY) as server, Follower(Screen(io.StringIO())) as follower:
        doubt.Doubt(f"{server.url}/jobs/1", is_queued, print, follower._over).begin()
        wait_until(lambda: len(looks) > 2, what="some looks at the job")
        assert server.asked == []
