"""Plays series side by side on one deployment, and gathers what their callers have learnt."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from aj.clock import monotonic_s
from tests.pace.callers import Callers, Followed, Learnt
from tests.pace.scene import Scene, played_on
from tests.pace.series import Phase, Row, Series

LOOK_S = 0.2
Say = Callable[[str], None]
Watched = list[tuple[Row, Followed]]


class Stopped(Exception):
    """Somebody wants the run to end early."""


def measure(folder: Path, played: Sequence[Series], seed: int, say: Say) -> dict[Row, list[Learnt]]:
    """Plays all of `played` in `folder`, which must be new."""
    with played_on(folder, played) as scene:
        begun_s = monotonic_s()

        def noted(text: str) -> None:
            say(f"{monotonic_s() - begun_s:5.0f} s, load {os.getloadavg()[0]:.1f}: {text}")

        noted("workers are ready")
        callers = Callers(scene.url)
        try:
            watched = _side_by_side([Player(each, scene, callers, seed, noted) for each in played])
            noted("all jobs have ended")
            measured: dict[Row, list[Learnt]] = {}
            for row, job in watched:
                measured.setdefault(row, []).append(job.end.result())
            noted(f"all callers have learnt of it; {_how_quick(measured)}")
            return measured
        finally:
            callers.close()


def _how_quick(measured: Mapping[Row, Sequence[Learnt]]) -> str:
    took_s = sorted(poll.took_s for seen in measured.values() for each in seen for poll in each.seen[1:])
    half, most, all_ = (f"{took_s[int(share * (len(took_s) - 1))]:.3f} s" for share in (0.5, 0.99, 1.0))
    return (
        f"half of {len(took_s)} answers came within {half} of when they were due, 99 % within {most}, all within {all_}"
    )


def _side_by_side(players: Sequence[Player]) -> Watched:
    with ThreadPoolExecutor(len(players)) as threads:
        plays = [threads.submit(each.play) for each in players]
        try:
            return [each for play in plays for each in play.result()]
        except BaseException:
            for each in players:
                each.stop.set()
            raise


class Player:
    """Plays one series."""

    def __init__(self, series: Series, scene: Scene, callers: Callers, seed: int, say: Say) -> None:
        self._series, self._scene, self._callers, self._say = series, scene, callers, say
        self._random = Random(f"{seed} {series.kind.task}")
        self.stop = threading.Event()

    def play(self) -> Watched:
        watched: Watched = []
        for phase in self._series.phases:
            waited = 0
            for _ in range(phase.rounds):
                watched += self._submit(phase)
                waited = max(waited, self._scene.waiting(self._series))
                while not self._scene.is_idle(self._series):
                    self._pause(LOOK_S)
            name = f"{self._series.kind.task}, {phase.ahead} ahead, {phase.rounds} times"
            self._say(f"{name}: up to {waited} waited when the last was submitted")
        return watched

    def _submit(self, phase: Phase) -> Watched:
        followed: Watched = []
        chosen = self._series.watched(phase)
        for number, (task, seconds) in enumerate(self._series.draws(phase, self._random)):
            self._pause(0.0)
            job = self._callers.submit(task, seconds)
            if number in chosen:
                self._callers.follow(job)
                followed.append((self._series.row(phase, number), job))
        return followed

    def _pause(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise Stopped
