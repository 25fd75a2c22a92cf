"""What the store holds of a deployment at one moment, and whether it agrees with itself. It changes nothing."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from aj.store import Keys
from aj.store.found import job_from
from aj.store.outbox import HOST_SHARE
from aj.store.rq_classes import Job as RqJob
from tests.conftest import Deployment

FINAL = ("succeeded", "failed")
RQ_STATUS = {"running": "started", "succeeded": "finished", "failed": "failed"}
Fields = dict[bytes, bytes]
Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class Books:
    """All that is known of the jobs `jobs`, ours and RQ's, read in one step. Absent hashes are empty."""

    now_ms: int
    jobs: dict[str, Fields]
    rq: dict[str, Fields]
    rows: dict[str, Fields]
    lives_ms: dict[str, tuple[int, int, int, int]]
    active: Scores
    leases: Scores
    delayed: Scores
    ended: dict[str, set[str]]
    hosts: Scores
    due: dict[str, Scores]
    busy: dict[str, Scores]
    waiting: list[str]
    taken: list[str]
    registries: dict[str, set[str]]

    def status(self, job_id: str) -> str:
        """Our status, or an empty text where the hash is gone."""
        return self.jobs[job_id].get(b"status", b"").decode()

    def execution(self, job_id: str) -> str:
        return self.jobs[job_id].get(b"execution", b"").decode()

    def attempt(self, job_id: str) -> int:
        return int(self.jobs[job_id].get(b"attempt", 0))

    def of(self, job_id: str) -> tuple[Fields, Fields, Fields]:
        """All that is written about one job; equal before and after what must change nothing."""
        noted = {name: value for name, value in self.rq[job_id].items() if name != b"last_heartbeat"}
        return self.jobs[job_id], noted, self.rows[job_id]


def look(deployment: Deployment, ids: Collection[str], hosts: Collection[str]) -> Books:
    """The books of the jobs `ids` and of the receivers `hosts`."""
    keys, queue = Keys(deployment.settings.prefix), deployment.queue
    with deployment.redis.pipeline() as pipe:
        pipe.time()
        for name in (keys.active, keys.leases, keys.delayed, keys.hosts):
            pipe.zrange(name, 0, -1, withscores=True)
        for status in FINAL:
            pipe.zrange(keys.ended(status), 0, -1)
        for host in hosts:
            pipe.zrange(keys.due(host), 0, -1, withscores=True)
            pipe.zrange(keys.busy(host), 0, -1, withscores=True)
        pipe.lrange(f"rq:queue:{queue}", 0, -1)
        pipe.lrange(f"rq:queue:{queue}:intermediate", 0, -1)
        for registry in ("wip", "finished", "failed"):
            pipe.zrange(f"rq:{registry}:{queue}", 0, -1)
        for job_id in ids:
            names = keys.job(job_id), RqJob.key_for(job_id), keys.delivery(job_id)
            for name in names:
                pipe.hgetall(name)
            for name in (*names, keys.tombstone(job_id)):
                pipe.pttl(name)
        replies = iter(pipe.execute())
    seconds, microseconds = next(replies)
    active, leases, delayed, with_work = (_scores(next(replies)) for _ in range(4))
    ended = {status: {each.decode() for each in next(replies)} for status in FINAL}
    due, busy = {}, {}
    for host in hosts:
        due[host], busy[host] = _scores(next(replies)), _scores(next(replies))
    lists = [[each.decode() for each in next(replies)] for _ in range(5)]
    jobs, rq, rows, lives_ms = {}, {}, {}, {}
    for job_id in ids:
        jobs[job_id], rq[job_id], rows[job_id] = next(replies), next(replies), next(replies)
        lives_ms[job_id] = (next(replies), next(replies), next(replies), next(replies))
    registries = dict(zip(("wip", "finished", "failed"), map(set, lists[2:]), strict=True))
    now_ms = seconds * 1000 + microseconds // 1000
    return Books(
        now_ms=now_ms,
        jobs=jobs,
        rq=rq,
        rows=rows,
        lives_ms=lives_ms,
        active=active,
        leases=leases,
        delayed=delayed,
        ended=ended,
        hosts=with_work,
        due=due,
        busy=busy,
        waiting=lists[0],
        taken=lists[1],
        registries=registries,
    )


def _scores(reply: Any) -> Scores:
    return {member.decode(): score for member, score in reply}


def check_outcomes(books: Books, callbacks: dict[str, str | None]) -> None:
    """A final status has its outcome, its tombstone and its webhook, and nothing else has them.

    `callbacks` gives the receiver's host of each job, None for a job without a webhook.
    """
    for job_id, fields in books.jobs.items():
        if not fields:
            continue
        final = books.status(job_id) in FINAL
        document = json.loads(job_from(job_id, fields).document())
        assert (b"outcome" in fields, b"ended_ms" in fields, b"expires_ms" in fields) == (final,) * 3
        assert ("result" in document, "error" in document) == (
            document["status"] == "succeeded",
            document["status"] == "failed",
        )
        assert (b"started_ms" in fields) == (document["status"] != "queued")
        assert b"progress" not in fields or document["status"] != "queued"
        told = final and callbacks[job_id] is not None
        assert bool(books.rows[job_id]) == told, "one row in the outbox exactly when there is an end to tell of"
        assert (b"callback_state" in fields) == told
        if told:
            state = books.rows[job_id].get(b"state", b"pending")
            assert fields[b"callback_state"] == state
            assert (b"callback_next_ms" in fields) == (state == b"pending")


def check_lives(books: Books) -> None:
    """What is over expires, and what is not does not."""
    for job_id, fields in books.jobs.items():
        ours_ms, rq_ms, row_ms, tombstone_ms = books.lives_ms[job_id]
        final = not fields or books.status(job_id) in FINAL
        if fields:
            assert (ours_ms > 0) == final, "our hash"
        assert (tombstone_ms > 0) == final, "the tombstone"
        if books.rq[job_id]:
            assert (rq_ms > 0) == final, "RQ's hash"
        if books.rows[job_id]:
            assert (row_ms > 0) == (b"state" in books.rows[job_id]), "the delivery"


def check_indexes(books: Books) -> None:
    """Each sorted set holds exactly what the hashes say."""
    by_status = {status: {each for each in books.jobs if books.status(each) == status} for status in RQ_STATUS}
    queued = {each for each in books.jobs if books.status(each) == "queued"}
    assert set(books.active) == queued | by_status["running"]
    assert set(books.leases) == by_status["running"]
    assert set(books.delayed) <= queued
    for status in FINAL:
        assert {each for each in books.ended[status] if books.jobs.get(each)} == by_status[status]
    pending = {each for each, row in books.rows.items() if row and b"state" not in row}
    for host, due in books.due.items():
        assert set(due) == {each for each in pending if books.rows[each][b"host"].decode() == host}
        live = {each for each, until in books.busy[host].items() if until > books.now_ms}
        assert live <= set(due)
        assert len(live) <= HOST_SHARE
    assert set(books.hosts) == {host for host, due in books.due.items() if due}


def check_rq(books: Books) -> None:
    """RQ's status is ours in its own words, and its registries hold what it says."""
    for job_id, fields in books.rq.items():
        ours = books.status(job_id)
        if not fields or not ours:
            continue
        queued = "scheduled" if job_id in books.delayed else "queued"
        assert fields[b"status"].decode() == RQ_STATUS.get(ours, queued), job_id
    known = {each for each, fields in books.rq.items() if fields and books.jobs[each]}
    running = {each for each in known if books.status(each) == "running"}
    assert books.registries["wip"] == {f"{each}:{books.execution(each)}" for each in running}
    assert books.registries["finished"] & known == {each for each in known if books.status(each) == "succeeded"}
    assert books.registries["failed"] & known == {each for each in known if books.status(each) == "failed"}
    for job_id in known:
        if books.status(job_id) == "queued":
            assert job_id in {*books.waiting, *books.taken, *books.delayed}, "a queued job that nobody would find"
