"""Waiting for a job with somebody looking on: a line that moves on a terminal, plain lines at changes elsewhere.

The client waits, in the main thread; a thread of ours draws, so that the seconds go on while nothing changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from aj import clock
from aj.cli.doubt import Doubt
from aj.cli.terminal import CLEAR, REST_OF_LINE_AWAY, START_OF_LINE, Screen
from aj.cli.view import View, line, live_line
from aj.client import Job

LIVE_EVERY_S, PLAIN_EVERY_S = 0.2, 1.0
AWAY = "cannot reach the API, asking again"


def follow(job: Job, timeout_s: float | None, screen: Screen) -> Job:
    """Waits for the end of `job` at most `timeout_s` seconds, for ever where that is None, and tells `screen` of it.

    Raises: ClientError: as `Job.wait` does.
    """
    with Follower(screen, lambda: bool(job.trouble)) as follower:
        if job.status:
            follower.saw(job)
        follower.doubt(job.url)
        return job.wait(timeout_s, follower.saw)


class Follower:
    """Tells a screen how a job stands, from the first look to the last. Use it as a context manager.

    `is_away` says whether nothing is heard of the job at the moment, though it is asked about.
    """

    def __init__(self, screen: Screen, is_away: Callable[[], bool] = lambda: False) -> None:
        self._screen, self._is_away = screen, is_away
        self._view = View()
        self._began_s = self._seen_s = clock.monotonic_s()
        self._told: View | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_telling, daemon=True)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._over.set()
        self._thread.join()
        if self._screen.is_live:
            self._screen.tell(CLEAR)

    def saw(self, job: Job) -> None:
        """The job has changed."""
        view = View.of(job.document)
        moved_on = view.status != self._view.status
        self._view, self._seen_s = view, clock.monotonic_s()
        if self._screen.is_live or moved_on:
            self._tell()

    def doubt(self, url: str) -> None:
        """Has the API asked why the job at `url` waits, where it waits for long."""
        Doubt(url, lambda: self._view.status == "queued", self._remark, self._over).begin()

    def _remark(self, text: str) -> None:
        """Writes a line of its own, and nothing once the wait is over."""
        with self._lock:
            if not self._over.is_set():
                self._screen.tell_over(text)

    def _keep_telling(self) -> None:
        """Draws while nothing is seen. In a file it tells what has changed since, so a flood of reports is no flood."""
        every_s = LIVE_EVERY_S if self._screen.is_live else PLAIN_EVERY_S
        while not self._over.wait(every_s):
            self._tell()

    def _tell(self) -> None:
        with self._lock:
            view, now_s = self._view, clock.monotonic_s()
            if self._is_away():  # an estimate counts on a server that works
                view = replace(view, message=AWAY, eta_s=None)
            if self._screen.is_live:
                drawn = live_line(view, now_s - self._began_s, now_s - self._seen_s, self._screen.columns - 1)
                self._screen.tell(START_OF_LINE + drawn + REST_OF_LINE_AWAY)
            elif view.status in ("queued", "running") and _without_estimate(view) != self._told:
                self._told = _without_estimate(view)
                self._screen.tell(line(view) + "\n")


def _without_estimate(view: View) -> View:
    """An estimate that moves is no change."""
    return View(view.status, view.position, None, view.fraction, view.message)
