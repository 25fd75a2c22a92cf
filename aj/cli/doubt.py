"""Why a job keeps waiting: what its API says of itself, told once to who waits for the job.

A job that nobody runs looks like one that waits for its turn, and the API knows the difference.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from aj.cli.text import plain
from aj.client import Client, ClientError

FIRST_S, AGAIN_S = 5.0, 30.0
REASON_MOST = 300  # characters: whoever answers there may say anything


@dataclass(frozen=True, slots=True)
class Doubt:
    """Asks the API of the job at `url` while `is_queued`, until `over`; `tell` is given one line, at most once."""

    url: str
    is_queued: Callable[[], bool]
    tell: Callable[[str], None]
    over: threading.Event

    def begin(self) -> None:
        """In a thread that nobody waits for, since an answer may take its time."""
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        base = self.url.rpartition("/jobs/")[0]
        pause_s = FIRST_S
        while not self.over.wait(pause_s):
            if not self.is_queued():
                continue
            pause_s = AGAIN_S
            try:
                reason = Client(base).unready_because()
            except ClientError:
                continue
            if reason is None:
                return
            if reason and self.is_queued():
                shown = reason if len(reason) <= REASON_MOST else f"{reason[:REASON_MOST]}…"
                self.tell(f"aj: it may wait for long: {plain(base)}/readyz says: {plain(shown)}")
                return
