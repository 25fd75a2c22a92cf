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

from rq.executions import Execution
from rq.utils import now
from rq.worker import WorkerStatus

from aj.clock import monotonic_s
from aj.errors import StoreUnavailable
from aj.job import ErrorType, Outcome, Status
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Claim, Client, Fenced, Jobs, Keys, Pulse
from aj.store.client import commands_of
from aj.store.ledger import note_failure, note_retry, note_success
from aj.store.rq_classes import Job, Queue
from aj.worker.attempt import JobAttempt
from aj.worker.horse import WorkHorse
from aj.worker.loop import MONITOR_INTERVAL_S, WorkLoop
from aj.worker.message import Order
from aj.worker.stall import Stall
from aj.worker.surroundings import Surroundings

log = logging.getLogger("aj.worker")

KILL_GRACE_S = 5
# A third of the shortest lease, and often enough to stop a job within 2 s of being asked.
BEAT_INTERVAL_S = 1.0
PASS_ON_PAUSE_S = 0.1
MOST_HORSES = 3


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
        self._stall = Stall(registry, surroundings, settings.max_result_bytes)
        self._horse: WorkHorse | None = None
        self._to_kill: set[str] = set()
        self._jobs = Jobs(client, Keys(settings.prefix))
        self._next_beat_s = 0.0
        self._asked_to_stop = False
        super().__init__(queue, client, settings.result_ttl_s, settings.prefix)

    def run(self) -> None:
        """Works until a signal asks it to stop; no work-horse stays behind. Raises: SettingsError."""
        try:
            super().run()
        finally:
            self.dismiss_horse()

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Takes the job, has a work-horse run it, and sees to it that it ends with an outcome."""
        readable = job.make_readable()
        try:
            execution, attempt = self._take(job, queue)
        except Fenced as refused:
            self._let_go(job, queue, refused)
            return
        with attempt.in_log():
            assert attempt.job is not None
            log.info("job %s: started, task %s, attempt %d", job.id, attempt.job.task, attempt.job.attempt)
            try:
                self.see_through(job, execution, attempt, readable=readable)
            finally:
                self.executions.pop(execution.id, None)

    def see_through(self, job: Job, execution: Execution, attempt: JobAttempt, *, readable: bool) -> None:
        """Runs a job that was taken, and writes how that ended."""
        if readable:
            outcome = self._run_by_horse(job, execution, attempt)
        else:
            outcome = Outcome.failed(ErrorType.TASK_UNAVAILABLE, "The worker cannot read the job's payload.")
        self._settle(job, execution, outcome)

    def _let_go(self, job: Job, queue: Queue, refused: Fenced) -> None:
        """Drops an entry that is not to be run; one of another deployment, which shares the queue, goes back to it."""
        if self._jobs.is_anothers(job.func_name):
            ours = self._jobs.pass_on(queue, job.id)
            if ours is None:
                self._stopping.wait(PASS_ON_PAUSE_S)
            else:
                self.take_up(lambda: queue.taken(ours))
            return
        log.warning("not run: %s", refused)
        self.connection.lrem(queue.intermediate_queue_key, 1, job.id)

    def refuse_unreadable(self, job_id: str) -> None:
        """Fails a job whose part in RQ is broken; left alone it would come back from every sweep and break us again."""
        claim = Claim(job_id, secrets.token_hex(16))
        attempt = JobAttempt(self._settings, self._registry, self._jobs, claim, self._host_of)
        try:
            attempt.start([("LREM", self.queues[0].intermediate_queue_key, 1, job_id)])
            attempt.decide(Outcome.failed(ErrorType.TASK_UNAVAILABLE, "The worker cannot read the job."))
            attempt.end([("DEL", Job.key_for(job_id))])
            attempt.log_end()
        except Fenced:
            self.connection.lrem(self.queues[0].intermediate_queue_key, 1, job_id)

    def _take(self, job: Job, queue: Queue) -> tuple[Execution, JobAttempt]:
        """What RQ does in two steps when a job starts, and our claim, in one. Raises: Fenced, StoreUnavailable."""
        ttl_s = self.get_heartbeat_ttl(job)
        with self.connection.pipeline() as pipe:
            execution = Execution.create(job, ttl_s, pipeline=pipe, worker_name=self.name)
            claim = Claim(job.id, execution.id)
            job.attempt = attempt = JobAttempt(self._settings, self._registry, self._jobs, claim, self._host_of)
            self.set_state(WorkerStatus.BUSY, pipeline=pipe)
            job.prepare_for_execution(self.name, pipeline=pipe)
            pipe.persist(job.key)
            pipe.lrem(queue.intermediate_queue_key, 1, job.id)
            pipe.execute()
        self.executions[execution.id] = execution
        return execution, attempt

    def _run_by_horse(self, job: Job, execution: Execution, attempt: JobAttempt) -> Outcome:
        """Has a work-horse run the job. An order that it died with before it began is given to another one."""
        assert attempt.job is not None
        assert job.timeout is not None
        taken = attempt.job
        order = Order(job.id, taken.task, job.kwargs, taken.attempt, taken.traceparent, int(job.timeout))
        for _ in range(MOST_HORSES):
            horse = self._fit_horse()
            horse.order(order)
            outcome = self._wait_for(horse, job, execution, attempt)
            if outcome is not None:
                return outcome
        log.warning("job %s: %d work-horses died before they began", job.id, MOST_HORSES)
        return Outcome.lost()

    def _wait_for(self, horse: WorkHorse, job: Job, execution: Execution, attempt: JobAttempt) -> Outcome | None:
        """How the job ended, however its work-horse did; None where it died before it began."""
        assert job.timeout is not None
        kill_at_s, overdue = monotonic_s() + job.timeout + KILL_GRACE_S, False
        self._asked_to_stop = False
        while True:
            lives = horse.lives
            outcome = horse.outcome(MONITOR_INTERVAL_S if lives else 0.0, attempt.report)
            if outcome is not None or not lives:
                break
            overdue = monotonic_s() >= kill_at_s
            if overdue or execution.id in self._to_kill or not self._may_go_on(job, execution):
                horse.kill()
        stopped = self._asked_to_stop or self._stopped_job_id == job.id
        self._stopped_job_id = None
        self._to_kill.clear()
        if outcome is not None:
            return outcome
        log.warning("job %s: its work-horse died", job.id)
        if overdue:
            return Outcome.timed_out(job.timeout)
        return Outcome.cancelled() if stopped else Outcome.lost() if horse.has_begun else None

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """RQ asks for this from a thread of its own, and by now another job may run: it is only noted which is meant.

        Where RQ's command names a job, that one is.
        """
        meant = [each.id for each in list(self.executions.values()) if self._stopped_job_id in (None, each.job_id)]
        self._to_kill.update(meant)

    def _fit_horse(self) -> WorkHorse:
        """The work-horse that is there, or a fresh one."""
        if self._horse is None or not self._horse.is_fit(self._settings.jobs_per_horse):
            self.dismiss_horse()
            self._horse = WorkHorse(self._stall.live)
        return self._horse

    def dismiss_horse(self) -> None:
        """No work-horse stays behind."""
        horse, self._horse = self._horse, None
        if horse is not None:
            horse.dismiss()

    def get_heartbeat_ttl(self, job: Job, working_time: float = 0.0) -> int:
        """Longer than our own lease, so that RQ's clean-up, which `rq info` runs too, never judges before a sweep."""
        return 4 * self._settings.lease_s + 60

    def _may_go_on(self, job: Job, execution: Execution) -> bool:
        """Says that the job is alive; False where it was given to somebody else, or is to be stopped."""
        if monotonic_s() < self._next_beat_s:
            return True
        self._next_beat_s = monotonic_s() + BEAT_INTERVAL_S
        assert isinstance(job.attempt, JobAttempt)
        ttl_s = self.get_heartbeat_ttl(job)
        with self.connection.pipeline() as pipe:
            self.heartbeat(pipeline=pipe)
            execution.heartbeat(job.started_job_registry, ttl_s, pipeline=pipe)
            job.heartbeat(now(), ttl_s, pipeline=pipe, xx=True)
            commands = commands_of(pipe)
        try:
            pulse = job.attempt.beat(commands)
        except StoreUnavailable as error:
            log.warning("no heartbeat for job %s: %s", job.id, error)
            return True
        if pulse is not Pulse.OURS:
            log.warning("job %s: its work-horse is ended: %s", job.id, pulse.name.lower().replace("_", " "))
            self._asked_to_stop = pulse is Pulse.ASKED_TO_STOP
        return pulse is Pulse.OURS

    def _settle(self, job: Job, execution: Execution, outcome: Outcome) -> None:
        """Writes how the attempt ended, the webhook and RQ's books in one step, through `JobAttempt.end`."""
        assert isinstance(job.attempt, JobAttempt)
        job.attempt.decide(outcome)
        retry_in_s = job.attempt.retry_in_s
        with self.connection.pipeline() as pipe:
            self.set_state(WorkerStatus.IDLE, pipeline=pipe)
            if outcome.status is Status.SUCCEEDED:
                self.increment_successful_job_count(pipe)
                note_success(pipe, job, execution, self.name, job.attempt.lives_s[0])
            else:
                self.increment_failed_job_count(pipe)
                if retry_in_s is None:
                    note_failure(pipe, job, execution, self.name, outcome.body.decode())
                else:
                    note_retry(pipe, job, execution, Queue(job.origin, self.connection), delayed=retry_in_s > 0)
            try:
                pipe.execute()
            except Fenced as refused:
                log.warning("%s", refused)
                return
        job.attempt.log_end()
