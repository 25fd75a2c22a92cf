"""Wait: a request is held until a job is as its caller wants it, within a bounded share of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from aj.clock import monotonic_s
from aj.job import Job
from aj.store import Changes, Found

LONGEST_WAIT_S = 60
# How often it is seen whether who waits is still there; the store is not asked for that.
SEEN_TO_S = 2.0


class Waiting:
    """Holds up to `share` requests at a time, and says at once that there is no place for more."""

    def __init__(self, find: Callable[[str], Found], changes: Changes, share: int) -> None:
        self._find, self._changes = find, changes
        self._places = threading.BoundedSemaphore(share)
        self._is_over = False

    def until(
        self,
        job_id: str,
        is_as_wanted: Callable[[Job], bool] | None,
        at_most_s: float,
        nobody_waits: Callable[[], bool] = lambda: False,
    ) -> Found | None:
        """What there is of the job once it is as wanted, or gone, or waiting is over, or after `at_most_s` seconds.

        Where nothing particular is wanted, its end is. Who waits for that is woken by nothing else.
        None, at once, where all places are taken. A place is free again when `nobody_waits` there any more.

        Raises: StoreUnavailable.
        """
        if not self._places.acquire(blocking=False):
            return None
        try:
            deadline_s = monotonic_s() + at_most_s
            with self._changes.watching(job_id, only_end=is_as_wanted is None) as changed:
                while True:
                    changed.clear()
                    found = self._find(job_id)
                    left_s = deadline_s - monotonic_s()
                    is_over = left_s <= 0 or self._is_over
                    if found.job is None or found.job.status.is_final or is_over:
                        return found
                    if is_as_wanted is not None and is_as_wanted(found.job):
                        return found
                    while not changed.wait(min(left_s, SEEN_TO_S)):
                        left_s = deadline_s - monotonic_s()
                        if left_s <= 0:
                            break
                        if nobody_waits():
                            return found
        finally:
            self._places.release()

    def let_go(self) -> None:
        """Ends all waits, those to come too: this process stops, and would cut them off without an answer."""
        self._is_over = True
        self._changes.wake_all()
