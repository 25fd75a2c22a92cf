"""What callers and operators do to jobs from outside: cancel, delete, list, look at deliveries, send again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rq.results import Result

from aj.job import CallbackState, Status, is_job_id
from aj.job import Job as OurJob
from aj.store.client import Client, commands_of, errors_converted
from aj.store.desk import Claim
from aj.store.found import readable_from
from aj.store.jobs import End, Webhook, end_of_job
from aj.store.keys import Keys
from aj.store.ledger import note_cancelled
from aj.store.replies import replies_of, text
from aj.store.rq_classes import Job, Queue, readable_job
from aj.store.scripts import Script

# Entries that one page may look at, whatever they turn out to be.
MOST_LOOKED_AT = 1000
SHOWN = ("status", "owner", "task", "created_ms", "started_ms", "ended_ms", "expires_ms", "attempt")
OF_CALLBACK = ("callback_url", "callback_state", "callback_attempts", "callback_last_status", "callback_next_ms")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs a list is to hold; `task` None means every task.

    `owners` are the callers whose jobs they may be. With `callbacks` only jobs whose webhook stands so. Ids begin with
    `beginning`. `shown` are the fields that are read.
    """

    statuses: frozenset[Status]
    task: str | None = None
    owners: tuple[str, ...] = ("",)
    callbacks: frozenset[CallbackState] | None = None
    beginning: str = ""
    shown: tuple[str, ...] = SHOWN

    def has(self, job: OurJob) -> bool:
        if job.status not in self.statuses or self.task not in (None, job.task) or job.owner not in self.owners:
            return False
        return self.callbacks is None or (job.callback is not None and job.callback.state in self.callbacks)


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs, newest first, without their outcomes; `next_id` is where the next page begins, if there is one."""

    jobs: list[OurJob]
    next_id: str | None


class Control:
    """Jobs of one deployment, seen and changed from outside."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self._cancel_queued = Script(client, "count", "pace", "lists", "end_job", "cancel_queued")
        self._ask_to_stop = Script(client, "ask_to_stop")
        self._delete = Script(client, "lists", "delete")
        self._redeliver = Script(client, "redeliver")

    def cancel_queued(self, ended: OurJob, ttls_s: tuple[int, int], webhook: Webhook | None) -> bool:
        """Ends a job that waits, with its webhook and RQ's entry; False where it does not wait any more.

        Raises: StoreUnavailable.
        """
        end = End(ended, ttls_s, webhook)
        names, words = end_of_job(self._keys, Claim(ended.id, ""), end, self._taken_away(ended))
        return bool(self._cancel_queued([*names, self._keys.delayed], words))

    def ask_to_stop(self, job_id: str) -> bool:
        """Has the worker stop a running job; False where it does not run. Raises: StoreUnavailable."""
        return bool(self._ask_to_stop([self._keys.job(job_id)], []))

    def delete(self, job_id: str, tombstone_ttl_s: int) -> str:
        """Forgets an ended job: `deleted`, or `active`, `expired` or `unknown`. Raises: StoreUnavailable."""
        names = [self._keys.job(job_id), self._keys.tombstone(job_id)]
        names += [Job.key_for(job_id), Result.get_key(job_id)]  # type: ignore[no-untyped-call]
        reply: bytes = self._delete(names, [job_id, tombstone_ttl_s * 1000])
        return reply.decode()

    def page(self, wanted: Wanted, before_id: str | None, limit: int) -> Page:
        """Up to `limit` jobs older than `before_id`. Looks at a bounded number of entries, so a page of a rare kind
        may hold fewer and still have a next one. Raises: StoreUnavailable."""
        jobs: list[OurJob] = []
        looked_at, most = 0, limit + 1
        with errors_converted(self._client.breaker), self._client.pipeline(transaction=False) as pipe:
            while True:
                most = min(most, MOST_LOOKED_AT - looked_at)
                ids = self._ids(wanted, before_id, most, pipe)
                for job in self.shown(ids, wanted.shown, pipe):
                    if wanted.has(job):
                        jobs.append(job)
                    if len(jobs) == limit:
                        return Page(jobs, None if job.id == ids[-1] and len(ids) < most else job.id)
                looked_at += len(ids)
                if len(ids) < most:
                    return Page(jobs, None)
                before_id = ids[-1]
                if looked_at == MOST_LOOKED_AT:
                    return Page(jobs, before_id)
                most *= 2

    def attempts(self, job_id: str) -> bytes | None:
        """The log of the job's webhook as a JSON array, or None where it has none. Raises: StoreUnavailable."""
        with errors_converted(self._client.breaker):
            row: Any = self._client.hmget(self._keys.delivery(job_id), ["url", "log"])
        exists, log = row
        return None if exists is None else b"[%s]" % (log or b"")

    def redeliver(self, job_id: str) -> str:
        """Sends an ended delivery again: `sent`, or `pending`, or `none`. Raises: StoreUnavailable."""
        names = [self._keys.delivery(job_id), self._keys.job(job_id), self._keys.hosts, self._keys.pending]
        reply: bytes = self._redeliver(names, [f"{self._keys.prefix}:out", job_id, self._keys.news])
        return reply.decode()

    def _ids(self, wanted: Wanted, before_id: str | None, most: int, pipe: Any) -> list[str]:
        """The newest `most` of all that may be wanted and are older than one id."""
        is_of_running = wanted.statuses == {Status.RUNNING}
        found = self._running(wanted, before_id, pipe) if is_of_running else self._listed(wanted, before_id, most, pipe)
        return sorted(found, reverse=True)[:most]

    def _listed(self, wanted: Wanted, before_id: str | None, most: int, pipe: Any) -> list[str]:
        """Of each list in which wanted ones may be its newest `most`."""
        names = [self._keys.ended(each, owner) for each in wanted.statuses if each.is_final for owner in wanted.owners]
        if wanted.statuses & {Status.QUEUED, Status.RUNNING}:
            [one, *others] = wanted.owners
            names.append(self._keys.active if others else self._keys.active_of(one))
        beginning = wanted.beginning
        newest = f"({before_id}" if before_id is not None else f"({beginning}~" if beginning else "+"
        for name in names:
            pipe.zrevrangebylex(name, newest, f"[{beginning}" if beginning else "-", 0, most)
        return [text(each) for some in pipe.execute() for each in some]

    def _running(self, wanted: Wanted, before_id: str | None, pipe: Any) -> list[str]:
        """All that run: they are no more than work-horses, and the oldest of the active ones, behind a whole backlog.
        Of one caller's only those that it may know of, since a page may end with one that it does not show."""
        [one, *others] = wanted.owners
        pipe.zinter([self._keys.leases] if others else [self._keys.leases, self._keys.active_of(one)])
        found = [text(each) for some in pipe.execute() for each in some]
        return [each for each in found if each.startswith(wanted.beginning) and (before_id is None or each < before_id)]

    def shown(self, ids: list[str], fields: tuple[str, ...], pipe: Any) -> list[OurJob]:
        """The readable jobs that there still are, in the order of their ids, from these fields of their hashes."""
        for job_id in ids:
            pipe.hmget(self._keys.job(job_id), fields)
        found = []
        for job_id, row in zip(ids, replies_of(pipe), strict=True):
            known = {name.encode(): value for name, value in zip(fields, row or (), strict=False) if value is not None}
            if b"status" in known and is_job_id(job_id):
                found.append(readable_from(job_id, known))
        return [each for each in found if each is not None]

    def _taken_away(self, ended: OurJob) -> list[tuple[Any, ...]]:
        """RQ's commands that take a waiting job out of its queue."""
        with errors_converted(self._client.breaker):
            job = readable_job(ended.id, self._client)
        if job is None:
            return [("DEL", Job.key_for(ended.id))]
        with self._client.pipeline() as pipe:
            note_cancelled(pipe, job, Queue(job.origin, self._client), (ended.outcome or b"").decode())
            return commands_of(pipe)
