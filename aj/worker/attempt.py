"""One try to run a job, as RQ's job class sees it: start it in the store, end it there with its webhook.

RQ's commands come along and are sent in the same atomic step. Holds the state of this try and nothing longer.
Whoever holds the claim uses it: the worker, or the sweep for a job that was lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from aj import clock
from aj.errors import StoreUnavailable
from aj.job import ErrorType, Job, Outcome
from aj.logs import about
from aj.registry import Registry
from aj.schedule import retry_delay_s
from aj.settings import Settings
from aj.store import NO_BOOKS, Claim, End, Jobs, Pulse, Success, Wish, patiently
from aj.webhook import webhook_of_end

log = logging.getLogger("aj.worker")

# How long a finished outcome is held for a store that is away.
END_FOR_S = 300.0
# A start whose answer is lost may have been carried out: who gives up then loses a job that never ran. SIGTERM does not
# end it sooner, as it does not end a job under way.
START_FOR_S = END_FOR_S
SILENT_FOR_S = 10.0
RETRYABLE = frozenset({ErrorType.TASK_FAILED, ErrorType.TIMED_OUT, ErrorType.LOST})


class JobAttempt:
    """A try of one job under one claim. `job` is the job as it was when it was taken, once it is."""

    def __init__(
        self, settings: Settings, registry: Registry, jobs: Jobs, claim: Claim, host_of: Callable[[str], str]
    ) -> None:
        self._settings, self._registry, self._jobs, self.claim = settings, registry, jobs, claim
        self._host_of = host_of
        self._clock_offset_s = self._silent_until_s = 0.0
        self._ended_ms = 0
        self._outcome: Outcome | None = None
        self.retry_in_s: float | None = None
        self.job: Job | None = None

    def hold(self, job: Job, now_ms: int) -> None:
        """Notes the job that is held, and the store's time; both clocks run alike, so it can be told later."""
        self.job = job
        self._clock_offset_s = now_ms / 1000 - clock.monotonic_s()

    @property
    def lives_s(self) -> tuple[int, int]:
        """How long the ended job can be read, and its id is remembered."""
        assert self.job is not None
        return self._settings.lives_s(self.job.result_ttl_s)

    def start(self, commands: list[tuple[Any, ...]]) -> None:
        """Takes the job. Raises: Fenced: it is not to be had. StoreUnavailable."""
        lease_s = self._settings.lease_s
        self.hold(*patiently(lambda: self._jobs.start(self.claim, lease_s, commands), START_FOR_S))

    def beat(self, commands: list[tuple[Any, ...]]) -> Pulse:
        """Renews the lease, and says what has become of the job. Raises: StoreUnavailable."""
        return self._jobs.beat(self.claim, self._settings.lease_s, commands)

    def report(self, progress: bytes) -> None:
        """Passes a progress report on; where the store is away it is dropped, since no task fails for a report."""
        if clock.monotonic_s() < self._silent_until_s:
            return
        try:
            self._jobs.report_progress(self.claim, progress)
        except StoreUnavailable as error:
            # A frozen store takes seconds to give up on; a task that reports often must not spend its time so.
            self._silent_until_s = clock.monotonic_s() + SILENT_FOR_S
            log.warning("a progress report of job %s is lost: %s", self.claim.job_id, error)

    def decide(self, outcome: Outcome, *, for_good: bool = False) -> None:
        """Notes how the try ended, and whether the job runs again (`retry_in_s`) or ends with it (None)."""
        assert self.job is not None
        self._outcome, self.retry_in_s = outcome, None
        task = self._registry.get(self.job.task)
        if task is not None and outcome.kind in RETRYABLE and not for_good:
            self.retry_in_s = retry_delay_s(self.job.attempt, task.retries, task.retry_delays_s)

    def end(self, commands: list[tuple[Any, ...]], books: Success = NO_BOOKS, wish: Wish | None = None) -> None:
        """Writes what was decided, waiting minutes for a store that is away.

        A worker's desk may have RQ's commands for it, and take the next job as `wish` says.

        Raises: Fenced, StoreUnavailable.
        """
        assert self.job is not None
        assert self._outcome is not None
        self._ended_ms = max(int((self._clock_offset_s + clock.monotonic_s()) * 1000), self.job.started_ms or 0)
        retry_in_s = self.retry_in_s
        if retry_in_s is not None:
            patiently(lambda: self._jobs.retry(self.claim, retry_in_s, commands), END_FOR_S)
            return
        ended = self.job.ended(self._outcome, self._ended_ms, self.lives_s[0])
        webhook = webhook_of_end(ended, self._settings.callback_schedule_s, self._host_of)
        end = End(ended, self.lives_s, webhook, books)
        patiently(lambda: self._jobs.finish(self.claim, end, commands, wish), END_FOR_S)

    def in_log(self) -> AbstractContextManager[None]:
        """Within this block the log's lines are about this try."""
        assert self.job is not None
        return about(self.job.id, self.job.task, self.job.attempt, self.job.traceparent)

    def log_end(self) -> None:
        """Says how the try ended, once `end` has written it."""
        assert self.job is not None
        assert self._outcome is not None
        status, kind = self._outcome.status, self._outcome.kind
        ran_s = (self._ended_ms - (self.job.started_ms or self._ended_ms)) / 1000
        why, fields = ("", {}) if kind is None else (f" ({kind})", {"error_type": kind})
        again = "" if self.retry_in_s is None else f", runs again in {self.retry_in_s:g} s"
        log.info(
            "job %s: %s%s%s", self.job.id, status, why, again, extra={"status": status, **fields, "duration_s": ran_s}
        )
