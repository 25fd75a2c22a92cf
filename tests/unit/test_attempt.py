"""One try to run a job, against a store that can be told to be away."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
import redis

import aj.clock
import aj.store.client
from aj import report_progress, task
from aj.errors import AddressRefused, StoreUnavailable
from aj.execute import Limits, execute
from aj.job import Callback, CallbackState, ErrorType, Job, Outcome, Status
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Claim, End, Fenced, Jobs, Webhook, Wish
from aj.worker.attempt import END_FOR_S, SILENT_FOR_S, JobAttempt
from tests.support.execution import Clock

JOB_ID = "0192f0c1-2345-7abc-8def-0123456789ab"
STARTED_MS = 1_796_000_001_000
PLAIN = Job(JOB_ID, Status.RUNNING, "square", STARTED_MS - 500, started_ms=STARTED_MS, attempt=1)
CALLED = Job(
    JOB_ID,
    Status.RUNNING,
    "square",
    STARTED_MS - 500,
    started_ms=STARTED_MS,
    attempt=1,
    callback_url="http://hooks.example/x",
    callback=Callback(CallbackState.PENDING),
)


@task(retries=1, retry_delays_s=(7,))
def patient() -> None: ...


REGISTRY = Registry([patient.__aj_task__])  # type: ignore[attr-defined]
SETTINGS = Settings(result_ttl_s=100, tombstone_ttl_s=50, idempotency_ttl_s=100, callback_schedule_s=(0.0, 5.0))


@dataclass
class FakeJobs:
    """Remembers what it was asked; each question first meets the next of `faults`, if there is one."""

    job: Job = PLAIN
    faults: list[Exception] = field(default_factory=list)
    reports: list[tuple[str, str, bytes]] = field(default_factory=list)
    finished: list[tuple[Job, str, tuple[int, int], Webhook | None, list[tuple[Any, ...]]]] = field(
        default_factory=list
    )
    retried: list[tuple[str, float]] = field(default_factory=list)

    def _meet_fault(self) -> None:
        if self.faults:
            raise self.faults.pop(0)

    def start(self, claim: Claim, lease_s: float, commands: list[tuple[Any, ...]]) -> tuple[Job, int]:
        self._meet_fault()
        return self.job, STARTED_MS

    def report_progress(self, claim: Claim, progress: bytes) -> None:
        self._meet_fault()
        self.reports.append((claim.job_id, claim.execution, progress))

    def retry(self, claim: Claim, delay_s: float, commands: list[tuple[Any, ...]]) -> None:
        self._meet_fault()
        self.retried.append((claim.execution, delay_s))

    def finish(self, claim: Claim, end: End, commands: list[tuple[Any, ...]], wish: Wish | None = None) -> None:
        self._meet_fault()
        self.finished.append((end.job, claim.execution, end.ttls_s, end.webhook, commands))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The monotonic clock of all; waiting moves it and takes no time."""
    made = Clock()

    class Event:
        def wait(self, timeout_s: float) -> bool:
            made.now_s += timeout_s
            return False

    class Threads:
        pass

    Threads.Event = Event  # type: ignore[attr-defined]
    monkeypatch.setattr(aj.clock, "monotonic_s", made)
    monkeypatch.setattr(aj.store.client, "monotonic_s", made)
    monkeypatch.setattr(aj.store.client, "threading", Threads)
    return made


def attempt_on(jobs: FakeJobs) -> JobAttempt:
    claim = Claim(JOB_ID, "execution-1")
    return JobAttempt(SETTINGS, REGISTRY, cast(Jobs, jobs), claim, lambda url: "hooks.example:80")


def started(jobs: FakeJobs, outcome: Outcome) -> JobAttempt:
    """An attempt whose job was taken and has ended."""
    attempt = attempt_on(jobs)
    attempt.start([])
    attempt.decide(outcome)
    return attempt


def away() -> StoreUnavailable:
    return StoreUnavailable("The job store cannot be used at the moment.")


# -- progress ----------------------------------------------------------------------------------------------


def test_a_report_goes_to_the_store_under_the_execution() -> None:
    """So that a report of an execution that lost the job is not taken."""
    jobs = FakeJobs()
    attempt_on(jobs).report(b'{"fraction": 0.5}')
    assert jobs.reports == [(JOB_ID, "execution-1", b'{"fraction": 0.5}')]


def test_a_report_that_the_store_cannot_take_is_dropped_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """Not tried again: the next one says more."""
    jobs = FakeJobs(faults=[away()])
    attempt = attempt_on(jobs)
    with caplog.at_level(logging.WARNING, "aj.worker"):
        attempt.report(b'{"fraction": 0.5}')
    assert [record.getMessage() for record in caplog.records] == [
        f"a progress report of job {JOB_ID} is lost: The job store cannot be used at the moment."
    ]
    assert caplog.records[0].exc_info is None


def test_after_a_lost_report_there_is_a_pause(clock: Clock) -> None:
    """A frozen store takes seconds to give up on; a task that reports in a loop must not spend its time so."""
    jobs = FakeJobs(faults=[away()])
    attempt = attempt_on(jobs)
    attempt.report(b'{"fraction": 0.5}')
    attempt.report(b'{"fraction": 0.6}')
    clock.now_s += SILENT_FOR_S
    attempt.report(b'{"fraction": 0.75}')
    assert [each[2] for each in jobs.reports] == [b'{"fraction": 0.75}']


def test_a_task_does_not_fail_for_its_reports() -> None:
    """A store that is away while it runs and back at its end has cost it nothing."""
    jobs = FakeJobs(faults=[away()])

    def call() -> str:
        report_progress(0.5)
        report_progress(1)
        return "done"

    outcome = execute(call, Limits(5, 100), 1e12, attempt_on(jobs).report, "job 1")
    assert outcome == Outcome.succeeded(b'"done"')


def test_another_error_of_a_report_is_not_hidden() -> None:
    """It would be a fault of ours."""
    with pytest.raises(KeyError):
        attempt_on(FakeJobs(faults=[KeyError()])).report(b"{}")


# -- the end -----------------------------------------------------------------------------------------------


def test_the_end_is_told_in_the_time_of_the_store(clock: Clock) -> None:
    """Its clock at the start, and what has passed here since."""
    jobs = FakeJobs()
    attempt = started(jobs, Outcome.succeeded(b"25"))
    clock.now_s += 2.5
    attempt.end([("SET", "a", "b")])
    [(ended, execution, ttls_s, webhook, commands)] = jobs.finished
    assert (ended.status, ended.outcome) == (Status.SUCCEEDED, b"25")
    assert (ended.started_ms, ended.ended_ms, ended.expires_ms) == (STARTED_MS, STARTED_MS + 2500, STARTED_MS + 102_500)
    assert (execution, ttls_s, webhook, commands) == ("execution-1", (100, 150), None, [("SET", "a", "b")])


def test_a_job_never_ends_before_it_started(clock: Clock) -> None:
    """Not by the rounding of a millisecond, nor where a clock misbehaves."""
    for back_s in (0.0001, 5.0):
        jobs = FakeJobs()
        attempt = started(jobs, Outcome.succeeded(b"25"))
        clock.now_s -= back_s
        attempt.end([])
        assert jobs.finished[0][0].ended_ms == STARTED_MS


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [(Outcome.succeeded(b"25"), "job.succeeded"), (Outcome.failed(ErrorType.LOST, "It died."), "job.failed")],
)
def test_a_job_with_a_callback_ends_with_its_webhook(outcome: Outcome, kind: str) -> None:
    """Due at once, with the final document in it, however the job ended."""
    jobs = FakeJobs(job=CALLED)
    started(jobs, outcome).end([])
    webhook = jobs.finished[0][3]
    assert webhook is not None
    assert (webhook.host, webhook.due_ms) == ("hooks.example:80", STARTED_MS)
    message = json.loads(webhook.body)
    assert (message["type"], message["job_id"], message["status"]) == (kind, JOB_ID, outcome.status)


def times(count: int, make: Callable[[], Exception]) -> list[Exception]:
    return [make() for _ in range(count)]


def test_an_outcome_waits_for_a_store_that_is_away(clock: Clock) -> None:
    """And is written as it was, with the time at which the job ended."""
    jobs = FakeJobs()
    attempt = started(jobs, Outcome.succeeded(b"25"))
    jobs.faults = times(50, away)
    attempt.end([])
    assert clock.now_s > 1060
    assert [each[0].ended_ms for each in jobs.finished] == [STARTED_MS]


def test_an_outcome_does_not_wait_for_ever(clock: Clock) -> None:
    """Minutes; then the store's absence comes through."""
    jobs = FakeJobs()
    attempt = started(jobs, Outcome.succeeded(b"25"))
    jobs.faults = times(10_000, away)
    with pytest.raises(StoreUnavailable):
        attempt.end([])
    assert END_FOR_S - 3 < clock.now_s - 1000 <= END_FOR_S


def test_a_job_that_is_another_executions_is_not_waited_for(clock: Clock) -> None:
    """Asking again would not change that."""
    jobs = FakeJobs()
    attempt = started(jobs, Outcome.succeeded(b"25"))
    jobs.faults = [Fenced("another has it")]
    with pytest.raises(Fenced):
        attempt.end([])
    assert clock.now_s == 1000


@pytest.mark.parametrize("act", ["start", "end"])
def test_a_store_that_is_away_for_minutes_is_waited_for(act: str, clock: Clock) -> None:
    """A start whose answer was lost may have been carried out: the job is ours, and nobody else will run it."""
    jobs, gave_up_s = FakeJobs(), clock.now_s + 240
    attempt = started(jobs, Outcome.succeeded(b"25"))

    def meet_fault() -> None:
        if clock.now_s < gave_up_s:
            raise away()

    jobs._meet_fault = meet_fault  # type: ignore[method-assign]
    getattr(attempt, act)([])
    assert clock.now_s < gave_up_s + 3


def test_keys_of_a_job_that_are_broken_are_not_waited_for() -> None:
    """They stay so. The second try tells: the first may have done what matters before it met them."""
    broken = away()
    broken.__cause__ = redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
    attempt = attempt_on(FakeJobs(faults=[broken]))
    attempt.start([])
    assert attempt.job == PLAIN
    jobs = FakeJobs(faults=[broken] * 3)
    with pytest.raises(StoreUnavailable):
        attempt_on(jobs).start([])
    assert len(jobs.faults) == 1


def test_a_start_waits_for_a_store_that_is_away_and_not_for_a_fence() -> None:
    """The store comes back; the job does not."""
    jobs = FakeJobs(faults=times(3, away))
    attempt = attempt_on(jobs)
    attempt.start([])
    assert attempt.job == PLAIN
    jobs.faults = [Fenced("taken")]
    with pytest.raises(Fenced):
        attempt_on(jobs).start([])


@pytest.mark.parametrize(
    ("outcome", "task", "said", "fields"),
    [
        (Outcome.succeeded(b"25"), "square", "succeeded", {"status": "succeeded"}),
        (
            Outcome.failed(ErrorType.LOST, "x"),
            "square",
            "failed (lost)",
            {"status": "failed", "error_type": "lost"},
        ),
        (
            Outcome.failed(ErrorType.TASK_FAILED, "x"),
            "patient",
            "failed (task-failed), runs again in 7 s",
            {"status": "failed", "error_type": "task-failed"},
        ),
    ],
)
def test_the_log_says_how_a_try_ended_and_how_long_it_took(
    clock: Clock, caplog: pytest.LogCaptureFixture, outcome: Outcome, task: str, said: str, fields: dict[str, str]
) -> None:
    """The wait for a store that is away is not counted."""
    jobs = FakeJobs(job=replace(PLAIN, task=task))
    attempt = started(jobs, outcome)
    clock.now_s += 2.5
    jobs.faults = times(3, away)
    with caplog.at_level(logging.INFO, "aj.worker"):
        attempt.end([])
        attempt.log_end()
    assert caplog.messages == [f"job {JOB_ID}: {said}"]
    assert vars(caplog.records[0]).items() >= {**fields, "duration_s": 2.5}.items()
    assert ("error_type" in vars(caplog.records[0])) == ("error_type" in fields)


# -- retries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ErrorType.TASK_FAILED, ErrorType.TIMED_OUT, ErrorType.LOST])
def test_a_task_with_retries_runs_again_after_its_delay(kind: ErrorType) -> None:
    """An exception, its time, the death of its worker: each may go better the next time."""
    jobs = FakeJobs(job=replace(CALLED, task="patient"))
    started(jobs, Outcome.failed(kind, "x")).end([])
    assert jobs.retried == [("execution-1", 7.0)]
    assert jobs.finished == []


@pytest.mark.parametrize("kind", sorted(set(ErrorType) - {ErrorType.TASK_FAILED, ErrorType.TIMED_OUT, ErrorType.LOST}))
def test_what_would_fail_again_is_not_run_again(kind: ErrorType) -> None:
    """A result that is no JSON, a task that is not known, a job that was stopped."""
    jobs = FakeJobs(job=replace(PLAIN, task="patient"))
    started(jobs, Outcome.failed(kind, "x")).end([])
    assert jobs.retried == []
    assert len(jobs.finished) == 1


def test_a_url_that_cannot_be_read_any_more_does_not_keep_the_job_from_ending() -> None:
    """It was accepted by an older version; the deliverer says what is wrong with it."""

    def refuse(url: str) -> str:
        raise AddressRefused(url)

    jobs = FakeJobs(job=CALLED)
    attempt = JobAttempt(SETTINGS, REGISTRY, cast(Jobs, jobs), Claim(JOB_ID, "execution-1"), refuse)
    attempt.start([])
    attempt.decide(Outcome.succeeded(b"25"))
    attempt.end([])
    assert jobs.finished[0][3] is not None
