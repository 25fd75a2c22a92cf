"""One try to run a job, as RQ's job class sees it: start it in the store, finish it there with its webhook.

RQ's commands come along and are sent in the same atomic step. Holds the state of this try and nothing longer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from aj import clock
from aj.deliver import webhook_for
from aj.errors import StoreUnavailable
from aj.job import Job, Outcome
from aj.schedule import delay_before_s
from aj.settings import Settings
from aj.store import Jobs, patiently

log = logging.getLogger("aj.worker")

# How long a finished outcome is held for a store that is away.
FINISH_FOR_S = 300.0
START_FOR_S = 10.0


class JobAttempt:
    """A try of one job under one execution id, in the worker and, after the fork, in its work-horse.

    `outcome` is set by whoever learns of the end; `started` is the job as it was when it was taken.
    """

    def __init__(
        self, settings: Settings, jobs: Jobs, job_id: str, execution: str, endpoint_of: Callable[[str], str]
    ) -> None:
        self._settings, self._jobs, self._job_id, self._execution = settings, jobs, job_id, execution
        self._endpoint_of = endpoint_of
        self.outcome: Outcome | None = None
        self.started: Job | None = None
        self._clock_offset_s = 0.0

    def start(self, commands: list[tuple[Any, ...]]) -> None:
        """Takes the job. Raises: Fenced: it is not to be had. StoreUnavailable."""
        self.started, now_ms = patiently(lambda: self._jobs.start(self._job_id, self._execution, commands), START_FOR_S)
        # Both clocks run alike, so the store's time can be told later without asking it again.
        self._clock_offset_s = now_ms / 1000 - clock.monotonic_s()

    def report(self, progress: bytes) -> None:
        """Passes a progress report on; where the store is away it is dropped, since no task fails for a report."""
        try:
            self._jobs.report_progress(self._job_id, self._execution, progress)
        except StoreUnavailable as error:
            log.warning("a progress report of job %s is lost: %s", self._job_id, error)

    def finish(self, commands: list[tuple[Any, ...]]) -> None:
        """Writes the outcome, waiting minutes for a store that is away. Raises: Fenced, StoreUnavailable."""
        assert self.started is not None
        assert self.outcome is not None
        ended_ms = max(int((self._clock_offset_s + clock.monotonic_s()) * 1000), self.started.started_ms or 0)
        ended = self.started.ended(self.outcome, ended_ms, self._settings.result_ttl_s)
        webhook = None
        if ended.callback_url is not None:
            first_s = delay_before_s(1, self._settings.callback_schedule_s) or 0.0
            webhook = webhook_for(ended, self._endpoint_of(ended.callback_url), first_s)
        ttls_s = (self._settings.result_ttl_s, self._settings.result_ttl_s + self._settings.tombstone_ttl_s)
        patiently(lambda: self._jobs.finish(ended, self._execution, ttls_s, webhook, commands), FINISH_FOR_S)
