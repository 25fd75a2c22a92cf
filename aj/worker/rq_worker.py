"""What a worker does with one job: take it, have a work-horse run it, see to it that it ends with an outcome.

RQ's executions, work-horses and books are used. Its monitor and its success and failure handlers are replaced:
they take a job whatever our hash says, lose an outcome when Redis is away at the wrong moment, take exit code 0
for success, and let a task swallow its timeout.
"""

# Our own job and queue classes narrow RQ's, and no others ever reach this worker.
# mypy: disable-error-code="override, no-untyped-call"

from __future__ import annotations

import logging
import secrets
import signal
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from rq.executions import Execution
from rq.utils import now
from rq.worker import WorkerStatus

from aj.clock import monotonic_s
from aj.errors import StoreUnavailable
from aj.job import ErrorType, Outcome, Status
from aj.logs import about
from aj.registry import Registry
from aj.settings import Settings
from aj.store import (
    NO_BOOKS,
    Books,
    Claim,
    Client,
    Desk,
    Fenced,
    Jobs,
    Keys,
    Pulse,
    Taken,
    Wish,
    patiently,
)
from aj.store.client import commands_of, errors_converted
from aj.store.ledger import note_failure, note_retry
from aj.store.rq_classes import Job, UnreadableJob, readable_job
from aj.worker.attempt import END_FOR_S, START_FOR_S, JobAttempt
from aj.worker.horse import WorkHorse
from aj.worker.loop import MONITOR_INTERVAL_S, WorkLoop
from aj.worker.message import Order
from aj.worker.stable import Stable
from aj.worker.stall import Stall
from aj.worker.surroundings import Surroundings

log = logging.getLogger("aj.worker")

KILL_GRACE_S = 5
# A third of the shortest lease, and often enough to stop a job within 2 s of being asked.
BEAT_INTERVAL_S = 1.0
PASS_ON_PAUSE_S = 0.1
MOST_HORSES = 3


@dataclass(frozen=True, slots=True)
class Run:
    """A job under way: as it was taken, under RQ's execution, as a try of ours."""

    taken: Taken
    execution: Execution
    attempt: JobAttempt


class Worker(WorkLoop):
    """Runs the jobs of one queue, one at a time, in a work-horse that is replaced from time to time."""

    def __init__(
        self,
        queue: str,
        client: Client,
        settings: Settings,
        registry: Registry,
        host_of: Callable[[str], str],
        surroundings: Surroundings = nullcontext,
    ) -> None:
        self._settings, self._registry, self._host_of = settings, registry, host_of
        stall = Stall(registry, surroundings, settings.max_result_bytes)
        self._stable = Stable(stall.live, settings.jobs_per_horse)
        self._to_kill: set[str] = set()
        self._jobs = Jobs(client, Keys(settings.prefix))
        self._next_beat_s = 0.0
        self._asked_to_stop = False
        super().__init__(queue, client, settings.result_ttl_s, settings.prefix)
        books = Books(client, queue, self.name, self.key, self.get_heartbeat_ttl())
        self._desk = Desk(Keys(settings.prefix), self.queue, books, settings.lease_s)

    def run(self) -> None:
        """Works until a signal asks it to stop; no work-horse stays behind. Raises: SettingsError."""
        try:
            super().run()
        finally:
            self.dismiss_horses()

    def take_up(self, job_id: str, *, goes_on: bool) -> bool:
        """Runs a job that was moved out of the queue, and with `goes_on` those behind it, while there are any."""
        wish = Wish(self._desk, lambda: True)
        with about(job_id):
            patiently(lambda: self._jobs.take(wish, job_id), START_FOR_S)
            if wish.taken is None:
                return self._let_go(job_id)
        taken: Taken | None = wish.taken
        while taken is not None:
            taken = self._run(taken, lambda: goes_on and self.may_go_on)
        return True

    def _run(self, taken: Taken, goes_on: Callable[[], bool]) -> Taken | None:
        """Sees to it that a job that was taken ends with an outcome. Gives the next one that was taken, if one was."""
        attempt = JobAttempt(self._settings, self._registry, self._jobs, taken.claim, self._host_of)
        attempt.hold(taken.job, taken.now_ms)
        run = Run(taken, Execution(taken.claim.execution, taken.job.id, self.connection, self.name), attempt)
        self.executions[run.execution.id], self._state = run.execution, WorkerStatus.BUSY
        with attempt.in_log():
            log.info("job %s: started, task %s, attempt %d", taken.job.id, taken.job.task, taken.job.attempt)
            try:
                return self.see_through(run, goes_on)
            finally:
                self._state = WorkerStatus.IDLE
                self.executions.pop(run.execution.id, None)

    def see_through(self, run: Run, goes_on: Callable[[], bool]) -> Taken | None:
        """Runs a job that was taken, and writes how that ended. Gives the next one that was taken, if one was."""
        if run.taken.params is None:
            outcome = Outcome.failed(ErrorType.TASK_UNAVAILABLE, "The worker cannot read the job's payload.")
        else:
            outcome = self._run_by_horse(run, run.taken.params)
        return self.settle(run, outcome, goes_on)

    def _let_go(self, job_id: str) -> bool:
        """Drops an entry that is not to be run; one of another deployment, which shares the queue, goes back to it.

        False where RQ knows nothing of it.
        """
        try:
            found = self.queue.taken(job_id)
        except UnreadableJob as error:
            log.error("%s", error)
            self._refuse_unreadable(job_id)
            return True
        if found is None:
            return False
        job, _ = found
        if job.make_readable() and self._jobs.is_anothers(job.func_name):
            ours = self._jobs.pass_on(self.queue, job_id)
            if ours is None:
                self._stopping.wait(PASS_ON_PAUSE_S)
            else:
                self.take_up(ours, goes_on=False)
            return True
        log.warning("not run: job %s is not waiting in the queue any more", job_id)
        self.connection.lrem(self.queue.intermediate_queue_key, 1, job_id)
        return True

    def _refuse_unreadable(self, job_id: str) -> None:
        """Fails a job whose part in RQ is broken; left alone it would come back from every sweep and break us again."""
        claim = Claim(job_id, secrets.token_hex(16))
        attempt = JobAttempt(self._settings, self._registry, self._jobs, claim, self._host_of)
        try:
            attempt.start([("LREM", self.queue.intermediate_queue_key, 1, job_id)])
            attempt.decide(Outcome.failed(ErrorType.TASK_UNAVAILABLE, "The worker cannot read the job."))
            attempt.end([("DEL", Job.key_for(job_id))])
            attempt.log_end()
        except Fenced:
            self.connection.lrem(self.queue.intermediate_queue_key, 1, job_id)

    def _run_by_horse(self, run: Run, params: dict[str, Any]) -> Outcome:
        """Has a work-horse run the job. An order that it died with before it began is given to another one."""
        job = run.taken.job
        order = Order(job.id, job.task, params, job.attempt, job.traceparent, run.taken.timeout_s)
        for _ in range(MOST_HORSES):
            outcome = self._wait_for(self._stable.order(order), run)
            if outcome is not None:
                return outcome
        log.warning("job %s: %d work-horses died before they began", job.id, MOST_HORSES)
        return Outcome.lost()

    def _wait_for(self, horse: WorkHorse, run: Run) -> Outcome | None:
        """How the job ended, however its work-horse did; None where it died before it began."""
        job_id, timeout_s = run.taken.job.id, run.taken.timeout_s
        kill_at_s, overdue = monotonic_s() + timeout_s + KILL_GRACE_S, False
        self._asked_to_stop = False
        while True:
            lives = horse.lives
            outcome = horse.outcome(MONITOR_INTERVAL_S if lives else 0.0, run.attempt.report)
            if outcome is not None or not lives:
                break
            overdue = monotonic_s() >= kill_at_s
            if overdue or run.execution.id in self._to_kill or not self._may_live_on(run):
                horse.kill()
        stopped = self._asked_to_stop or self._stopped_job_id == job_id
        self._stopped_job_id = None
        self._to_kill.clear()
        if outcome is not None:
            return outcome
        if stopped:
            log.info("job %s: was stopped on request", job_id)
        else:
            log.warning("job %s: its work-horse died", job_id)
        if overdue:
            return Outcome.timed_out(timeout_s)
        return Outcome.cancelled() if stopped else Outcome.lost() if horse.has_begun else None

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """RQ asks for this from a thread of its own, and by now another job may run: it is only noted which is meant.

        Where RQ's command names a job, that one is.
        """
        meant = [each.id for each in list(self.executions.values()) if self._stopped_job_id in (None, each.job_id)]
        self._to_kill.update(meant)

    def dismiss_horses(self) -> None:
        """No work-horse stays behind."""
        self._stable.dismiss()

    def get_heartbeat_ttl(self, job: Job | None = None, working_time: float = 0.0) -> int:
        """Longer than our own lease, so that RQ's clean-up, which `rq info` runs too, never judges before a sweep."""
        return 4 * self._settings.lease_s + 60

    def _may_live_on(self, run: Run) -> bool:
        """Says that the job is alive; False where it was given to somebody else, or is to be stopped."""
        if monotonic_s() < self._next_beat_s:
            return True
        self._next_beat_s = monotonic_s() + BEAT_INTERVAL_S
        job, ttl_s = self._rq_job(run), self.get_heartbeat_ttl()
        with self.connection.pipeline() as pipe:
            self.heartbeat(pipeline=pipe)
            run.execution.heartbeat(job.started_job_registry, ttl_s, pipeline=pipe)
            job.heartbeat(now(), ttl_s, pipeline=pipe, xx=True)
            commands = commands_of(pipe)
        try:
            pulse = run.attempt.beat(commands)
        except StoreUnavailable as error:
            log.warning("no heartbeat for job %s: %s", job.id, error)
            return True
        if pulse is not Pulse.OURS:
            log.warning("job %s: its work-horse is ended: %s", job.id, pulse.name.lower().replace("_", " "))
            self._asked_to_stop = pulse is Pulse.ASKED_TO_STOP
        return pulse is Pulse.OURS

    def settle(self, run: Run, outcome: Outcome, goes_on: Callable[[], bool]) -> Taken | None:
        """Writes how a job ended, with its webhook and RQ's books, and takes the next one, in one step."""
        attempt, commands, books = run.attempt, [], NO_BOOKS
        wish = Wish(self._desk, goes_on)
        attempt.decide(outcome)
        if outcome.status is Status.SUCCEEDED:
            books = self._desk.success(run.taken, attempt.lives_s[0])
        else:
            commands = self._books_of_failure(run, outcome)
        try:
            attempt.end(commands, books, wish)
            attempt.log_end()
        except Fenced as refused:
            log.warning("%s", refused)
        return wish.taken

    def _books_of_failure(self, run: Run, outcome: Outcome) -> list[tuple[Any, ...]]:
        """RQ's commands for an attempt that failed. Without RQ's part the job cannot run again."""
        again = None
        if run.attempt.retry_in_s is not None:
            again = patiently(lambda: self._whole_rq_job(run), END_FOR_S)
        if again is None:
            run.attempt.decide(outcome, for_good=True)
        with self.connection.pipeline() as pipe:
            self.increment_failed_job_count(pipe)
            if again is None or run.attempt.retry_in_s is None:
                note_failure(pipe, self._rq_job(run), run.execution, self.name, outcome.body.decode())
            else:
                self.set_state(WorkerStatus.IDLE, pipeline=pipe)
                note_retry(pipe, again, run.execution, self.queue, delayed=run.attempt.retry_in_s > 0)
            return commands_of(pipe)

    def _whole_rq_job(self, run: Run) -> Job | None:
        """RQ's part of the job, where it can be read. Raises: StoreUnavailable."""
        with errors_converted():
            return readable_job(run.taken.job.id, self.connection)

    def _rq_job(self, run: Run) -> Job:
        """RQ's part of the job, as far as a sign of life and the end of it need it; nothing is asked of the store."""
        job = Job(run.taken.job.id, self.connection)
        job.origin, job.failure_ttl = self.queue.name, run.attempt.lives_s[0]
        return job
