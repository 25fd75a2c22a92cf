"""Plays `aj check` against reference servers, as the command does."""

from __future__ import annotations

from collections.abc import Iterable

from aj.check.options import Call, Options
from aj.check.point import Level, Point, State
from aj.check.points import ALL
from aj.check.profile import load
from aj.check.run import Outcome, run
from aj.check.scene import Scene
from tests.check.door import API_KEY, serving
from tests.check.telling import KEY


def options(url: str) -> Options:
    """All that every point needs; the slow job is short, for the sake of the tests."""
    return Options(
        base_url=url,
        profile=load("aj"),
        call=Call("/jobs", {"n": 5}),
        slow=Call("/jobs", {"task": "rest", "seconds": 0.8}),
        failing=Call("/jobs", {"task": "fail"}),
        expiring=Call("/jobs", {"task": "forget_soon"}),
        api_key=API_KEY,
        callback=("127.0.0.1", 0),
        secret=KEY,
        timeout_s=10.0,
        job_timeout_s=4.0,
    )


def play(level: Level, *faults: str, points: Iterable[Point] = ALL) -> Outcome:
    """What is found of a reference server with these faults."""
    with serving(*faults) as url, Scene(options(url)) as scene:
        return run(scene, points, level, lambda _: None)


def names(outcome: Outcome, state: State) -> dict[str, str]:
    """The points of which this was found, each with the reason."""
    return {each.point.name: each.why for each in outcome.findings if each.state is state}
