"""Sweep: sees to jobs that nobody sees to any more, every second, from every worker process.

A running job whose lease is over is lost, or runs again where its task has retries. A job that was taken from the
queue and not started goes back to its head. A delayed job goes into its queue when it is due. RQ's own clean-up
does none of this in time, and is not safe to run from two processes; every step here is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from uuid import uuid4

from aj.clock import monotonic_s
from aj.errors import StoreUnavailable
from aj.job import Outcome
from aj.logs import about
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Claim, Fenced, Jobs, Recovery
from aj.store.client import is_wrong_type
from aj.store.recovery import Held
from aj.worker.attempt import JobAttempt

log = logging.getLogger("aj.sweep")

INTERVAL_S = 1.0
STRANDED_AFTER_S = 2.0


class Sweep:
    """Looks for stuck jobs of the deployment's queues."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        jobs: Jobs,
        recovery: Recovery,
        host_of: Callable[[str], str],
    ) -> None:
        self._settings, self._registry, self._jobs, self._recovery = settings, registry, jobs, recovery
        self._host_of = host_of
        self._in_touch_since_s = monotonic_s()
        self._looked_ms: int | None = None
        self._first_seen_s: dict[tuple[str, str], float] = {}

    def __call__(self, stop: threading.Event) -> None:
        """Works until `stop` is set."""
        while not stop.wait(INTERVAL_S):
            try:
                self.once()
            except StoreUnavailable:
                # Workers cannot have renewed their leases either, also where the store is only full or read-only:
                # they get a whole lease to do so.
                self._in_touch_since_s = monotonic_s() + INTERVAL_S

    def once(self) -> None:
        """One sweep. Raises: StoreUnavailable."""
        trouble = self._recovery.look()
        self._notice_a_gap(trouble.now_ms)
        if monotonic_s() - self._in_touch_since_s >= self._settings.lease_s:
            for job_id in trouble.lapsed:
                self._one(self._end_lapsed, job_id, trouble.now_ms)
        for job_id in trouble.due:
            self._one(self._promote, job_id, trouble.now_ms)
        for queue in self._settings.queues:
            self._rescue_stranded(queue)
            self._recovery.trim_registries(queue)
        self._recovery.forget_expired()
        for job_id in self._recovery.orphans():
            self._one(self._end_orphan, job_id, trouble.now_ms)

    def _notice_a_gap(self, now_ms: int) -> None:
        """More time than usual went by on the store's clock: it hung or was set, or the host slept with all of us.

        Workers may live that could not renew their leases, so they get a whole lease to do so.
        """
        looked_ms, self._looked_ms = self._looked_ms, now_ms
        usual_s = INTERVAL_S + self._settings.lease_s / 4
        if looked_ms is not None and now_ms - looked_ms > usual_s * 1000:
            self._in_touch_since_s = monotonic_s()

    def _one(self, see_to: Callable[[str, int], None], job_id: str, now_ms: int) -> None:
        """Sees to one job; one that cannot be helped must not keep the others waiting. Raises: StoreUnavailable."""
        with about(job_id):
            try:
                see_to(job_id, now_ms)
            except Fenced:
                log.debug("job %s: its worker lives, or another sweep was quicker", job_id)
            except StoreUnavailable as error:
                if not is_wrong_type(error.__cause__):
                    raise
                log.exception("job %s cannot be helped", job_id)
            except Exception:
                log.exception("job %s cannot be helped", job_id)

    def _promote(self, job_id: str, now_ms: int) -> None:
        if self._recovery.promote(job_id):
            log.info("job %s: its delay is over, it is queued again", job_id)

    def _end_lapsed(self, job_id: str, now_ms: int) -> None:
        held = self._recovery.held(job_id)
        if held is None:
            self._recovery.drop_lease(job_id)
            return
        self._end(held, now_ms, Claim(job_id, held.execution, only_lapsed=True))

    def _end(self, held: Held, now_ms: int, claim: Claim, *, is_orphan: bool = False) -> None:
        """Without RQ's part, which has the parameters, a job cannot run again, whatever retries its task has."""
        attempt = JobAttempt(self._settings, self._registry, self._jobs, claim, self._host_of)
        attempt.hold(held.job, now_ms)
        outcome = Outcome.cancelled() if held.asked_to_stop else Outcome.lost()
        rq_job = self._recovery.rq_job(held.job.id)
        attempt.decide(outcome, for_good=is_orphan or rq_job is None)
        with attempt.in_log():
            self._recovery.end_attempt(held, rq_job, attempt, outcome.body.decode(), attempt.retry_in_s)
            log.warning("job %s: nobody ran it any more", held.job.id)
            attempt.log_end()

    def _rescue_stranded(self, queue: str) -> None:
        """An entry is stranded when two looks, some time apart, find it: a live worker starts it within a moment."""
        now_s, taken = monotonic_s(), self._recovery.taken(queue)
        for job_id in taken:
            if now_s - self._first_seen_s.setdefault((queue, job_id), now_s) < STRANDED_AFTER_S:
                continue
            with about(job_id):
                if self._recovery.rescue(queue, job_id):
                    log.warning("job %s: it was taken and not started; it is back in the queue", job_id)
        gone = [key for key in self._first_seen_s if key[0] == queue and key[1] not in taken]
        for key in gone:
            del self._first_seen_s[key]

    def _end_orphan(self, job_id: str, now_ms: int) -> None:
        """A queued job that is gone or over on RQ's side can never run."""
        claim = Claim(job_id, uuid4().hex)
        job, _ = self._jobs.start(claim, self._settings.lease_s, [])
        self._end(Held(job, claim.execution), now_ms, claim, is_orphan=True)
