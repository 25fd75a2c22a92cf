"""What a worker does with one job: take it, have a work-horse run it, see to it that it ends with an outcome.

RQ's executions, work-horses and books are used. Its monitor and its success and failure handlers are replaced:
they take a job whatever our hash says, lose an outcome when Redis is away at the wrong moment, take exit code 0
for success, and let a task swallow its timeout.
"""

# Our own job and queue classes narrow RQ's, and no others ever reach this worker.
# mypy: disable-error-code="override, no-untyped-call"

from __future__ import annotations

import logging
import os
import secrets
import signal
from collections.abc import Callable
from contextlib import nullcontext

from rq.executions import Execution
from rq.utils import now
from rq.worker import WorkerStatus

from aj.clock import monotonic_s
from aj.errors import StoreUnavailable
from aj.execute import Limits, TimedOut, execute, prepare
from aj.job import ErrorType, Outcome, Status
from aj.logs import about_in_every_thread
from aj.processes import die_with_parent
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Claim, Client, Fenced, Jobs, Keys, Pulse
from aj.store.client import commands_of
from aj.store.ledger import note_failure, note_retry, note_success
from aj.store.rq_classes import Job, Queue
from aj.worker.alarm import alarm_after
from aj.worker.attempt import JobAttempt
from aj.worker.loop import MONITOR_INTERVAL_S, WorkLoop
from aj.worker.report_pipe import ReportPipe
from aj.worker.surroundings import Surroundings, inside

log = logging.getLogger("aj.worker")

KILL_GRACE_S = 5
# A third of the shortest lease, and often enough to stop a job within 2 s of being asked.
BEAT_INTERVAL_S = 1.0
PASS_ON_PAUSE_S = 0.1


class Worker(WorkLoop):
    """Runs the jobs of one queue, each in a work-horse of its own."""

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
        self._surroundings = surroundings
        self._jobs = Jobs(client, Keys(settings.prefix))
        self._next_beat_s = 0.0
        self._asked_to_stop = False
        super().__init__(queue, client, settings.result_ttl_s, settings.prefix)

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
            if readable:
                job.run = lambda: self._run(job, attempt)
                self.fork_work_horse(job, queue)
                self.monitor_work_horse(job, queue, execution)
            else:
                unreadable = Outcome.failed(ErrorType.TASK_UNAVAILABLE, "The worker cannot read the job's payload.")
                self._settle(job, execution, unreadable)
        self.set_state(WorkerStatus.IDLE)

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
            self.heartbeat(pipeline=pipe)
            job.heartbeat(now(), ttl_s, pipeline=pipe)
            job.prepare_for_execution(self.name, pipeline=pipe)
            pipe.persist(job.key)
            pipe.lrem(queue.intermediate_queue_key, 1, job.id)
            pipe.execute()
        self.executions[execution.id] = execution
        return execution, attempt

    def monitor_work_horse(self, job: Job, queue: Queue, execution: Execution) -> None:
        """Waits for the work-horse; where it dies before its outcome is written, that is done here.

        Once the task has ended no time limit counts any more: a work-horse may wait for a store that is away.
        """
        assert job.timeout is not None
        kill_at_s, overdue = monotonic_s() + job.timeout + KILL_GRACE_S, False
        self._asked_to_stop = False
        while os.waitpid(self._horse_pid, os.WNOHANG)[0] == 0:
            self._pipe.wait(MONITOR_INTERVAL_S)
            self._pipe.listen()
            if not self._pipe.has_ended and monotonic_s() >= kill_at_s:
                overdue = True
                self.kill_horse()
            self._beat(job, execution)
        self._pipe.listen()
        self._pipe.close()
        self._horse_pid = 0
        self.executions.pop(execution.id, None)
        if self._pipe.has_written:
            return
        stopped = self._asked_to_stop or self._stopped_job_id == job.id
        self._stopped_job_id = None
        outcome = Outcome.timed_out(job.timeout) if overdue else Outcome.cancelled() if stopped else Outcome.lost()
        log.warning("job %s: its work-horse died before the outcome was written", job.id)
        self._settle(job, execution, outcome)

    def fork_work_horse(self, job: Job, queue: Queue) -> None:
        self._pipe = ReportPipe()
        super().fork_work_horse(job, queue)
        self._pipe.listen_only()

    def get_heartbeat_ttl(self, job: Job, working_time: float = 0.0) -> int:
        """Longer than our own lease, so that RQ's clean-up, which `rq info` runs too, never judges before a sweep."""
        return 4 * self._settings.lease_s + 60

    def _beat(self, job: Job, execution: Execution) -> None:
        """Says that the job is alive. Where it was given to somebody else meanwhile, its work-horse is ended."""
        if monotonic_s() < self._next_beat_s:
            return
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
            return
        if pulse is not Pulse.OURS and not self._pipe.has_ended:
            log.warning("job %s: its work-horse is ended: %s", job.id, pulse.name.lower().replace("_", " "))
            self._asked_to_stop = pulse is Pulse.ASKED_TO_STOP
            self.kill_horse()

    def main_work_horse(self, job: Job, queue: Queue) -> None:
        die_with_parent(self.pid or 0, signal.SIGKILL)
        about_in_every_thread()
        super().main_work_horse(job, queue)

    def perform_job(self, job: Job, queue: Queue, execution: Execution) -> bool:
        assert job.run is not None
        outcome = job.run()
        self._pipe.say_ended()
        self._settle(job, execution, outcome)
        self._pipe.say_written()
        return outcome.status is Status.SUCCEEDED

    def _run(self, job: Job, attempt: JobAttempt) -> Outcome:
        """In the work-horse: the checks of parameters are the application's code as well as the task is."""
        assert job.timeout is not None
        assert attempt.job is not None
        name = attempt.job.task

        def call() -> object:
            return prepare(self._registry, name, job.kwargs)()

        limits = Limits(int(job.timeout), self._settings.max_result_bytes)
        deadline_s = monotonic_s() + job.timeout
        try:
            with alarm_after(job.timeout, TimedOut):
                return execute(inside(self._surroundings, call), limits, deadline_s, attempt.report, f"job {job.id}")
        except TimedOut:
            return Outcome.timed_out(job.timeout)

    def _settle(self, job: Job, execution: Execution, outcome: Outcome) -> None:
        """Writes how the attempt ended, the webhook and RQ's books in one step, through `JobAttempt.end`."""
        assert isinstance(job.attempt, JobAttempt)
        job.attempt.decide(outcome)
        retry_in_s = job.attempt.retry_in_s
        with self.connection.pipeline() as pipe:
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
        self.executions.pop(execution.id, None)
        job.attempt.log_end()
