"""A deployment that a random history is played to, and what must hold of it after each step.

The store, the worker's code and the sweep are the real ones; only the work-horses are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from aj import clock
from aj.egress import host_of
from aj.errors import KeyReused, QueueFull
from aj.job import NEXT, ErrorType, Outcome, Status
from aj.registry import Registry
from aj.store import Jobs, Keys, Outbox, Recovery, connect
from aj.store.rq_classes import Job
from aj.submit import Submit
from aj.worker.rq_worker import Run
from aj.worker.sweep import Sweep
from tests.conftest import Deployment
from tests.property.books import Books, check_indexes, check_lives, check_outcomes, check_rq, look
from tests.support.leaks import leaked_keys

HOSTS = ("127.0.0.1", "127.0.0.2")
SQUARE, AT_ONCE, LATER = {"n": 1}, {"task": "try_again_at_once", "fail": True}, {"task": "try_again_later"}
RETRIES = {"square": 0, "try_again_at_once": 2, "try_again_later": 1}
MOST_JOBS, MOST_QUEUED = 9, 6
WORKED = Outcome.succeeded(b"null")
RAISED = Outcome.failed(ErrorType.TASK_FAILED, "ValueError")
NO_JSON = Outcome.failed(ErrorType.RESULT_INVALID, "no JSON")


class History(RuleBasedStateMachine):
    """`books` is what the store held after the last step. A step says itself what may have come of it."""

    deploy: ClassVar[Callable[..., Deployment]]

    def __init__(self) -> None:
        super().__init__()
        self.deployment = type(self).deploy(AJ_MAX_QUEUED=str(MOST_QUEUED), AJ_CALLBACK_SCHEDULE_S="0,0,0")
        self.settings = self.deployment.settings
        self.keys, registry = Keys(self.settings.prefix), Registry.load(self.settings.tasks)
        client = connect(self.settings.redis_url, for_worker=True)
        self.jobs, self.outbox = Jobs(client, self.keys), Outbox(client, self.keys)
        self.recovery = Recovery(client, self.keys)
        self.submit_verb = Submit(self.settings, registry, self.jobs, host_of)
        self.sweeper = Sweep(self.settings, registry, self.jobs, self.recovery, host_of)
        self.sweeper._in_touch_since_s = clock.monotonic_s() - 3600
        self.sweeper._rescue_stranded = lambda queue: None  # type: ignore[method-assign] # a rule does that
        # Executions that took a job once, and may still believe that they have it.
        self.holders: list[Run] = []
        self.worker = self.deployment.worker()
        self.worker.see_through = self._hold  # type: ignore[method-assign,assignment]
        self.members: dict[str, dict[str, Any]] = {}
        self.callbacks: dict[str, str | None] = {}
        self.by_key: dict[str, str] = {}
        self.books = self._look()

    def _hold(self, run: Run, *_: object) -> None:
        self.holders.append(run)

    def _look(self) -> Books:
        return look(self.deployment, tuple(self.members), HOSTS)

    def _pick(self, number: int, ids: Iterable[str]) -> str:
        found = list(ids)
        return found[number % len(found)]

    def _unchanged(self, job_id: str) -> None:
        assert self._look().of(job_id) == self.books.of(job_id)

    def _with(self, *statuses: str) -> list[str]:
        return [each for each in self.members if self.books.status(each) in statuses]

    def _may_run_again(self, job_id: str, attempt: int) -> bool:
        return attempt <= RETRIES[self.members[job_id].get("task", "square")]

    def submit_job(self, task: dict[str, Any], key: str | None, host: str | None) -> None:
        """A key stands for one payload; a full queue and a wrong payload leave nothing behind."""
        members = {**task} if host is None else {**task, "callback_url": f"http://{host}:9/hook"}
        known = None if key is None else self.by_key.get(key)
        try:
            accepted = self.submit_verb(members, key)
        except KeyReused:
            assert known is not None
            assert self.members[known] != members
            return
        except QueueFull:
            assert known is None
            assert len(self.books.waiting) >= MOST_QUEUED
            return
        assert accepted.replayed == (known is not None)
        if known is not None:
            assert (accepted.job_id, self.members[known]) == (known, members)
            return
        assert len(self.books.waiting) < MOST_QUEUED
        self.members[accepted.job_id], self.callbacks[accepted.job_id] = members, host
        if key is not None:
            self.by_key[key] = accepted.job_id

    def take_job(self, outcome: Outcome | None) -> None:
        """A worker takes the first entry that RQ knows: a job that waits runs, and everything else is dropped."""
        first = next(place for place, each in enumerate(self.books.waiting) if self.books.rq[each])
        job_id, holders = self.books.waiting[first], len(self.holders)
        assert self.worker.work_once()
        now = self._look()
        if self.books.status(job_id) == "queued" and job_id not in self.books.delayed:
            assert (now.status(job_id), now.attempt(job_id)) == ("running", self.books.attempt(job_id) + 1)
            assert len(self.holders) == holders + 1
        else:
            self._unchanged(job_id)
        assert now.waiting == self.books.waiting[first + 1 :]
        assert sorted(now.taken) == sorted(self.books.taken)
        if outcome is not None and len(self.holders) > holders:
            self.books = now
            self.end_attempt(self.holders[-1], outcome)

    def end_attempt(self, holder: Run, outcome: Outcome) -> None:
        """An execution ends; one that lost its job meanwhile, or has ended it before, changes nothing."""
        job_id, runs = holder.taken.job.id, self._is_current(holder)
        self.worker.settle(holder, outcome, lambda: False)
        if not runs:
            self._unchanged(job_id)
            return
        again = outcome.kind is ErrorType.TASK_FAILED and self._may_run_again(job_id, self.books.attempt(job_id))
        assert self._look().status(job_id) == ("queued" if again else outcome.status)

    def _is_current(self, holder: Run) -> bool:
        job_id = holder.taken.job.id
        return self.books.status(job_id) == "running" and self.books.execution(job_id) == holder.execution.id

    def expire(self, job_id: str) -> None:
        """The hash of an ended job goes, and RQ's; a delivery that is over goes too, and one that is not stays."""
        self.deployment.redis.delete(self.keys.job(job_id), Job.key_for(job_id))
        if b"state" in self.books.rows[job_id]:
            self.deployment.redis.delete(self.keys.delivery(job_id))
        self.callbacks[job_id] = None

    @invariant()
    def what_is_written_holds(self) -> None:
        """The store agrees with itself, and with what it said before."""
        before, self.books = self.books, self._look()
        check_outcomes(self.books, self.callbacks)
        check_lives(self.books)
        check_indexes(self.books)
        check_rq(self.books)
        for job_id, was in before.jobs.items():
            self._check_moved_on(job_id, before, was)

    def _check_moved_on(self, job_id: str, before: Books, was: dict[bytes, bytes]) -> None:
        now = self.books.jobs[job_id]
        if not was:
            assert not now, "an expired job came back"
        if not was or not now:
            return
        then, status = Status(before.status(job_id)), Status(self.books.status(job_id))
        # A sweep that ends an orphan takes it first, in the same breath.
        reachable = {then, *NEXT[then]} | {each for one in NEXT[then] for each in NEXT[one]}
        assert status in reachable
        assert self.books.attempt(job_id) >= before.attempt(job_id)
        if not status.is_final:
            assert (now.get(b"execution") == was.get(b"execution")) == (
                self.books.attempt(job_id) == before.attempt(job_id)
            ), "each attempt has an execution of its own"
        assert now[b"created_ms"] == was[b"created_ms"]
        if then.is_final:
            kept = [name for name in was if not name.startswith(b"callback_")]
            assert {name: now.get(name) for name in kept} == {name: was[name] for name in kept}

    def teardown(self) -> None:
        assert leaked_keys(self.deployment.redis, self.settings.prefix) == []
        keys = self.deployment.keys()
        parts = [Job.key_for(each) for each in self.members]
        self.deployment.redis.delete(f"rq:queue:{self.deployment.queue}", *keys, *parts)
