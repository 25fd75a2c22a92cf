"""What the dashboard asks of the store beside what the API asks: a whole deployment, what else is known of one job,
webhooks that are owed. Reads and changes nothing; what it reads does not grow with the number of jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rq.suspension import WORKERS_SUSPENDED
from rq.utils import utcparse
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from aj.job import Job as OurJob
from aj.store.client import Client, errors_converted
from aj.store.control import OF_CALLBACK, SHOWN, Control
from aj.store.desk import decompressed
from aj.store.keys import Keys
from aj.store.replies import moment, replies_of, text, whole
from aj.store.rq_classes import NO_ARGUMENTS, Job, Queue
from aj.store.scripts import Script

MINUTES = 60
MOST_TOLD = 200


@dataclass(frozen=True, slots=True)
class Minute:
    """How many jobs ended in the minute that began at `at_ms`."""

    at_ms: int
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class Running:
    """A job that runs. `worker` is RQ's name of who runs it; `is_unheard` says that it has not renewed its lease."""

    id: str
    worker: str | None
    is_unheard: bool
    task: str
    started_ms: int
    attempt: int
    progress: bytes | None


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """An RQ worker that lives, and the job that it has in hand. Times are RQ's, by its host's clock."""

    name: str
    host: str
    pid: str
    since_ms: int | None
    seen_ms: int | None
    state: str
    succeeded: int
    failed: int
    job: Running | None


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """One queue: jobs in it, since when its first one waits, and its workers, of which the first ones are told."""

    name: str
    jobs: int
    first_since_ms: int | None
    living: int
    workers: list[WorkerSeen]


@dataclass(frozen=True, slots=True)
class Overview:
    """A whole deployment at one moment of the store's clock, and the last hour by minutes, the oldest first.

    `unheard` are running jobs whose workers are not heard of, of which the first ones are told.
    """

    now_ms: int
    running: int
    delayed: int
    pending: int
    oldest_pending_ms: int | None
    is_suspended: bool
    minutes: list[Minute]
    queues: list[QueueSeen]
    unheard: list[Running]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs of a caller are active, and how many that ended so can be read."""

    active: int
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class Details:
    """What else is known of a job. `params` is JSON, None where they are no longer kept."""

    params: bytes | None
    worker: str | None
    queue: str | None
    queued_ms: int | None
    asked_to_stop: bool
    has_webhook: bool
    attempts: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Owed:
    """A webhook that is owed since `since_ms`, None where no time is noted; `job` is None where it is no more."""

    job_id: str
    since_ms: int | None
    job: OurJob | None


class Board:
    """One deployment as an operator looks at it. Each method raises StoreUnavailable."""

    def __init__(self, client: Client, keys: Keys, control: Control) -> None:
        self._client, self._keys, self._control = client, keys, control
        self._overview = Script(client, "count", "first_in_queue", "overview")

    def overview(self, queues: Sequence[str]) -> Overview:
        """All of it in one round trip."""
        names = [self._keys.leases, self._keys.delayed, self._keys.pending, WORKERS_SUSPENDED]
        words = [self._keys.job(""), Queue.redis_queue_namespace_prefix, WORKERS_BY_QUEUE_KEY % "", self._keys.prefix]
        words += [Job.redis_job_namespace_prefix, str(MOST_TOLD), *queues]
        now_ms, running, delayed, pending, oldest_ms, suspended, *more = self._overview(names, words)
        hour, last_hour, rows, *lines = more
        jobs = [_running(row) for row in rows]
        at_work = {job.worker: job for job in jobs}
        return Overview(
            now_ms=now_ms,
            running=running,
            delayed=delayed,
            pending=pending,
            oldest_pending_ms=moment(oldest_ms),
            is_suspended=bool(suspended),
            minutes=_minutes(now_ms, hour, last_hour),
            queues=[
                QueueSeen(name.decode(), length, moment(since), living, [_worker(w, at_work) for w in told])
                for name, length, since, living, told in lines
            ],
            unheard=[job for job in jobs if job.is_unheard],
        )

    def counts(self, owner: str) -> Counts:
        """Of one caller, from its own lists."""
        with errors_converted(self._client.breaker), self._client.pipeline(transaction=False) as pipe:
            pipe.zcard(self._keys.active_of(owner))
            pipe.zcard(self._keys.ended("succeeded", owner))
            pipe.zcard(self._keys.ended("failed", owner))
            return Counts(*pipe.execute())

    def details(self, job_id: str) -> Details:
        """What else there is of a job, in one round trip."""
        with errors_converted(self._client.breaker), self._client.pipeline(transaction=False) as pipe:
            pipe.hmget(Job.key_for(job_id), ["data", "worker_name"])
            pipe.hmget(self._keys.job(job_id), ["queue", "queued_ms", "stop"])
            pipe.hmget(self._keys.delivery(job_id), ["url", "log"])
            rows = replies_of(pipe)
        data, worker = rows[0] or (None, None)
        queue, queued_ms, stop = rows[1] or (None, None, None)
        url, log = rows[2] or (None, None)
        return Details(
            params=None if data is None else params_from(data),
            worker=text(worker) or None,
            queue=text(queue) or None,
            queued_ms=moment(queued_ms),
            asked_to_stop=stop is not None,
            has_webhook=url is not None,
            attempts=attempts_from(log),
        )

    def owed(self, first: int, most: int) -> tuple[list[Owed], bool]:
        """Webhooks that are owed, whosever, the oldest first, from the entry `first` on, and whether there are more."""
        fields = (*SHOWN, *OF_CALLBACK)
        with errors_converted(self._client.breaker), self._client.pipeline(transaction=False) as pipe:
            pipe.zrange(self._keys.pending, first, first + most, withscores=True)
            [rows] = pipe.execute()
            since = {text(job_id): moment(at_ms) for job_id, at_ms in rows[:most]}
            jobs = {job.id: job for job in self._control.shown(list(since), fields, pipe)}
        return [Owed(job_id, at_ms, jobs.get(job_id)) for job_id, at_ms in since.items()], len(rows) > most

    def owed_since(self, job_ids: Sequence[str]) -> dict[str, int | None]:
        """Since when the webhook of each job is owed; None where it is not."""
        with errors_converted(self._client.breaker), self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.zscore(self._keys.pending, job_id)
            return {job_id: moment(score) for job_id, score in zip(job_ids, pipe.execute(), strict=True)}

    def attempts(self, job_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """The attempts to bring the webhook of each job."""
        with errors_converted(self._client.breaker), self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(self._keys.delivery(job_id), "log")
            logs = replies_of(pipe)
        return {job_id: attempts_from(log) for job_id, log in zip(job_ids, logs, strict=True)}


def params_from(data: bytes) -> bytes | None:
    """The parameters in RQ's payload of a job as JSON; None where it has none any more, or cannot be read."""
    try:
        payload = decompressed(data).decode()
        return None if payload == NO_ARGUMENTS else json.dumps(json.loads(payload)[3], ensure_ascii=False).encode()
    except Exception:
        return None


def attempts_from(log: bytes | None) -> list[dict[str, Any]]:
    """The attempts of which a log tells; none where it cannot be read."""
    try:
        told = json.loads(b"[%s]" % (log or b""))
    except (ValueError, RecursionError):
        return []
    return [each for each in told if isinstance(each, dict)]


def _running(row: Sequence[Any]) -> Running:
    job_id, worker, is_over, task, started_ms, attempt, progress = row
    times = (moment(started_ms) or 0, whole(attempt) or 0)
    return Running(text(job_id), text(worker) or None, bool(is_over), text(task), *times, progress)


def _worker(row: Sequence[Any], at_work: dict[str | None, Running]) -> WorkerSeen:
    key, host, pid, birth, seen, state, succeeded, failed = row
    name = text(key).rpartition(":")[2]
    times, counts = (_ms(birth), _ms(seen)), (whole(succeeded) or 0, whole(failed) or 0)
    return WorkerSeen(name, text(host), text(pid), *times, text(state), *counts, at_work.get(name))


def _minutes(now_ms: int, hour: Sequence[bytes], last_hour: Sequence[bytes]) -> list[Minute]:
    now = now_ms // 60_000
    counts = {}
    for pairs, first in ((last_hour, now // 60 * 60 - 60), (hour, now // 60 * 60)):
        for field, count in zip(pairs[::2], pairs[1::2], strict=True):
            counts[first + (whole(field[1:]) or 0), field[:1]] = max(0, whole(count) or 0)
    return [
        Minute(minute * 60_000, counts.get((minute, b"s"), 0), counts.get((minute, b"f"), 0))
        for minute in range(now - MINUTES + 1, now + 1)
    ]


def _ms(time: bytes | None) -> int | None:
    try:
        return moment(utcparse(text(time)).timestamp() * 1000) if time else None
    except ValueError:
        return None
