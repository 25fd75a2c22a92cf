"""Cancel: a job that waits never runs, a job that runs is stopped; either way it ends once, as cancelled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from aj import clock
from aj.errors import AlreadyEnded, StoreUnavailable
from aj.job import ErrorType, Job, Outcome, Status
from aj.settings import Settings
from aj.store import Control, Found
from aj.waiting import Waiting
from aj.webhook import webhook_of_end

# The worker sees the wish within a second; the rest is for the end of the work-horse and a busy machine.
STOPPED_WITHIN_S = 2.5
PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancels jobs, whatever they are at when the wish arrives."""

    settings: Settings
    control: Control
    find: Callable[[str], Found]
    waiting: Waiting

    def __call__(self, job_id: str) -> Found:
        """What there is of the job, ended as cancelled; still running only where its worker is slow to die, and no job
        any more where it was deleted meanwhile.

        Raises: AlreadyEnded: it ended otherwise. StoreUnavailable.
        """
        deadline_s = clock.monotonic_s() + PATIENCE_S
        while clock.monotonic_s() < deadline_s:
            found = self.find(job_id)
            if found.job is None or found.job.status.is_final:
                return _judged(found)
            if found.job.status is Status.QUEUED:
                self._end_queued(found.job, found.job.created_ms + int(found.age_s * 1000))
            elif self.control.ask_to_stop(job_id):
                stopped = self.waiting.until(job_id, lambda job: job.status is not Status.RUNNING, STOPPED_WITHIN_S)
                if stopped is None or (stopped.job is not None and stopped.job.status is Status.RUNNING):
                    return stopped or found
        raise StoreUnavailable("The job changes too quickly to be cancelled; try again.")

    def _end_queued(self, job: Job, now_ms: int) -> None:
        lives_s = self.settings.lives_s(job.result_ttl_s)
        ended = job.ended(Outcome.cancelled(), now_ms, lives_s[0])
        webhook = webhook_of_end(ended, self.settings.callback_schedule_s)
        self.control.cancel_queued(ended, lives_s, webhook)


def _judged(found: Found) -> Found:
    if found.job is None:
        return found
    error = json.loads(found.job.outcome or b"null") if found.job.status is Status.FAILED else None
    if error is None or error["type"] != ErrorType.CANCELLED:
        raise AlreadyEnded(f"The job has ended already: it {found.job.status}.")
    return found
