"""Random histories of jobs and deliveries, legal and illegal: whatever happens, in whatever order, what is final stays.

Each rule does one thing that a process of the deployment may do, or that may happen to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from aj.job import CallbackState, Outcome
from aj.store import Attempt, Delivery, Key, Place, Pulse, Verdict
from aj.store.outbox import HOST_SHARE
from aj.store.rq_classes import Job
from aj.worker.rq_worker import Run
from tests.conftest import Deployment
from tests.property.history import (
    AT_ONCE,
    HOSTS,
    LATER,
    MOST_JOBS,
    MOST_QUEUED,
    NO_JSON,
    RAISED,
    SQUARE,
    WORKED,
    History,
)

which = st.integers(0, 10_000)
tasks = st.sampled_from([AT_ONCE, AT_ONCE, LATER, SQUARE, {"n": 2}])
hosts = st.sampled_from(HOSTS)


class OfJobs(History):
    """Submissions, attempts, leases, delays and sweeps."""

    @initialize(first=st.lists(tasks, min_size=1, max_size=3))
    def begin_with_some(self, first: list[dict[str, Any]]) -> None:
        for task in first:
            self.submit_job(task, None, HOSTS[0])
            self.books = self._look()
            self.take_job(None)

    @precondition(lambda self: len(self.members) < MOST_JOBS)
    @rule(task=tasks, key=st.sampled_from([None, "k1", "k2"]), host=st.sampled_from([None, *HOSTS]))
    def submit(self, task: dict[str, Any], key: str | None, host: str | None) -> None:
        self.submit_job(task, key, host)

    @precondition(lambda self: any(self.books.jobs.values()))
    @rule(number=which)
    def send_the_submission_again(self, number: int) -> None:
        """The first reply was lost, so the client library repeats the command: one job all the same."""
        job_id = self._pick(number, (each for each, fields in self.books.jobs.items() if fields))
        submission, task = self.submit_verb._validated(self.members[job_id], "")
        text = next((key for key, known in self.by_key.items() if known == job_id), None)
        key = None if text is None else Key(text, self.settings.idempotency_ttl_s)
        place = Place(self.deployment.queue, task.timeout_s or 180, 60, MOST_QUEUED)
        answer = self.jobs.submit(job_id, submission, place, key)
        assert (answer.verdict, answer.job_id) == (Verdict.CREATED, job_id)
        self._unchanged(job_id)
        assert self._look().waiting == self.books.waiting

    @precondition(lambda self: any(self.books.rq[each] for each in self.books.waiting))
    @rule(outcome=st.sampled_from([None, None, RAISED, WORKED, NO_JSON]))
    def take(self, outcome: Outcome | None) -> None:
        self.take_job(outcome)

    @precondition(lambda self: self.holders)
    @rule(number=which, outcome=st.sampled_from([RAISED, WORKED, NO_JSON]))
    def settle(self, number: int, outcome: Outcome) -> None:
        self.end_attempt(self.holders[number % len(self.holders)], outcome)

    @precondition(lambda self: self.outdated())
    @rule(number=which, outcome=st.sampled_from([RAISED, WORKED]))
    def settle_a_job_that_another_one_runs(self, number: int, outcome: Outcome) -> None:
        """The worker was cut off, its job ran again, and now it is back with an outcome."""
        late = self.outdated()
        holder = late[number % len(late)]
        holder.attempt.report(b'{"fraction": 0.9}')
        self._unchanged(holder.taken.job.id)
        self.end_attempt(holder, outcome)

    def outdated(self) -> list[Run]:
        running = self._with("running")
        return [each for each in self.holders if each.taken.job.id in running and not self._is_current(each)]

    @precondition(lambda self: self.holders)
    @rule(number=which)
    def beat(self, number: int) -> None:
        """Only the execution that runs keeps its lease; what others write of it counts for nothing."""
        holder = self.holders[number % len(self.holders)]
        assert (holder.attempt.beat([]) is Pulse.OURS) == self._is_current(holder)
        holder.attempt.report(b'{"fraction": 0.5}')
        if not self._is_current(holder):
            self._unchanged(holder.taken.job.id)

    @precondition(lambda self: self.books.leases)
    @rule(number=which, at_once=st.booleans())
    def lose_a_worker(self, number: int, at_once: bool) -> None:
        """Its lease ends; a sweep may see that before its worker is heard of again, or after."""
        self.deployment.redis.zadd(self.keys.leases, {self._pick(number, self.books.leases): 1})
        if at_once:
            self.books = self._look()
            self.sweep()

    @precondition(lambda self: self.books.delayed)
    @rule(number=which)
    def let_a_delay_end(self, number: int) -> None:
        self.deployment.redis.zadd(self.keys.delayed, {self._pick(number, self.books.delayed): 1})

    @rule()
    def sweep(self) -> None:
        """Leases that are over are ended, delays that are over too, and nothing else is touched."""
        self.sweeper.once()
        now = self._look()
        assert all(until > self.books.now_ms for until in (*now.leases.values(), *now.delayed.values()))
        for job_id, until in self.books.leases.items():
            if until > now.now_ms:
                assert now.jobs[job_id] == self.books.jobs[job_id]
            elif not self._may_run_again(job_id, self.books.attempt(job_id)):
                assert now.status(job_id) == "failed"

    @precondition(lambda self: self.members)
    @rule(number=which)
    def promote_what_another_sweep_saw(self, number: int) -> None:
        """Two sweeps look at once; the slower one finds nothing to do."""
        job_id = self._pick(number, self.members)
        due = self.books.delayed.get(job_id)
        if due is None:
            assert not self.recovery.promote(job_id)
            self._unchanged(job_id)
        elif due <= self.books.now_ms:
            assert self.recovery.promote(job_id)

    @precondition(lambda self: self.books.taken)
    @rule(number=which)
    def rescue(self, number: int) -> None:
        """What waits goes back to the head; what does not is only removed."""
        job_id = self._pick(number, self.books.taken)
        assert self.recovery.rescue(self.deployment.queue, job_id) == (self.books.status(job_id) == "queued")
        self._unchanged(job_id)

    @rule(what=st.sampled_from(("die", "twice", "lose", "expire")), number=which)
    def have_an_accident(self, what: str, number: int) -> None:
        """What hands, crashes and time do; one rule, so that most of a history is work."""
        queued, final = self._with("queued"), self._with("succeeded", "failed")
        queue = f"rq:queue:{self.deployment.queue}"
        if what == "die" and self.books.waiting:  # between taking an entry and starting the job
            self.deployment.redis.lmove(queue, f"{queue}:intermediate", "LEFT", "RIGHT")
        elif what == "twice":  # an entry of plain RQ, or of a hand
            self.deployment.redis.rpush(queue, self._pick(number, self.members))
        elif what == "lose" and queued:  # as `rq empty` does
            self.deployment.redis.delete(Job.key_for(self._pick(number, queued)))
        elif what == "expire" and final:
            self.expire(self._pick(number, final))


class OfDeliveries(History):
    """Webhooks of ended jobs, claimed, sent, recorded in time or late."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[Delivery] = []

    @initialize(owed=st.lists(hosts, min_size=3, max_size=7))
    def begin_with_some(self, owed: list[str]) -> None:
        for host in owed:
            self.end_another(host)

    @precondition(lambda self: len(self.members) < MOST_JOBS)
    @rule(host=hosts)
    def end_another(self, host: str) -> None:
        self.submit_job(SQUARE, None, host)
        self.books = self._look()
        self.take_job(WORKED)
        self.books = self._look()

    @precondition(lambda self: self.books.hosts)
    @rule(most=st.integers(1, 6))
    def claim_deliveries(self, most: int) -> None:
        """No more than was asked for, none that another one holds, no host over its share."""
        claimed, _ = self.outbox.claim(most, 30)
        assert len(claimed) <= most
        for each in claimed:
            assert self.books.due[each.host][each.job_id] <= self._look().now_ms
            assert each.attempt == int(self.books.rows[each.job_id][b"attempts"]) + 1
        for host in HOSTS:
            assert sum(each.host == host for each in claimed) <= HOST_SHARE
        self.claims += claimed

    @precondition(lambda self: self.claims)
    @rule(number=which)
    def let_a_deliverer_freeze(self, number: int) -> None:
        """The lease of a claim ends, and somebody else may repeat the attempt."""
        each = self.claims[number % len(self.claims)]
        if b"state" not in self.books.rows[each.job_id] and self.books.rows[each.job_id]:
            for index in (self.keys.due(each.host), self.keys.busy(each.host)):
                self.deployment.redis.zadd(index, {each.job_id: 1}, xx=True)
            self.deployment.redis.zadd(self.keys.hosts, {each.host: 1})

    @precondition(lambda self: self.claims)
    @rule(
        number=which,
        state=st.sampled_from([CallbackState.PENDING, *CallbackState]),
        http_status=st.sampled_from([None, 200, 410, 503]),
        next_in_s=st.sampled_from([0.0, 0.0, 100.0]),
    )
    def record(self, number: int, state: CallbackState, http_status: int | None, next_in_s: float) -> None:
        """A late record counts only where it says that the webhook arrived."""
        each = self.claims[number % len(self.claims)]
        row = self.books.rows[each.job_id]
        counts = bool(row) and b"state" not in row
        counts = counts and (row[b"token"].decode() == each.token or state is CallbackState.DELIVERED)
        self.outbox.record(each, Attempt(state, http_status, each.attempt, next_in_s))
        now = self._look()
        if not counts:
            self._unchanged(each.job_id)
        elif self.books.jobs[each.job_id]:
            assert now.jobs[each.job_id][b"callback_state"].decode() == state
            assert (b"state" in now.rows[each.job_id]) == (state is not CallbackState.PENDING)
        if now.rows[each.job_id]:
            assert now.rows[each.job_id][b"body"] == row[b"body"], "the same bytes on every attempt"

    @rule(number=which)
    def let_a_job_expire(self, number: int) -> None:
        if final := self._with("succeeded"):
            self.expire(self._pick(number, final))


@pytest.mark.parametrize("kind", [OfJobs, OfDeliveries], ids=["jobs", "deliveries"])
def test_no_history_leaves_a_final_state(deploy: Callable[..., Deployment], kind: type[History]) -> None:
    """Whatever comes, in any order and late; what is final stays, and every index says what the hashes say."""
    machine = type("Machine", (kind,), {"deploy": staticmethod(deploy)})
    run_state_machine_as_test(machine, settings=profile(max_examples=50, stateful_step_count=40))
