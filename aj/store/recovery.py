"""What a sweep asks of the store: what is stuck, and how it is freed. Each step is safe to take from many sweeps."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Protocol

import redis
from rq.executions import Execution
from rq.registry import FailedJobRegistry, FinishedJobRegistry

from aj.job import Job as OurJob
from aj.store.client import Client, commands_of, errors_converted, is_wrong_type
from aj.store.found import job_from
from aj.store.keys import Keys
from aj.store.ledger import note_failure, note_queued, note_retry
from aj.store.orphans import Orphans
from aj.store.rq_classes import Job, Queue, as_id, drop_entry, readable_job
from aj.store.scripts import Script, flattened

log = logging.getLogger("aj.store")
MOST_AT_A_TIME = 100
# So that a sweep a second keeps up with some thousand jobs a second.
MOST_BATCHES = 50


@dataclass(frozen=True, slots=True)
class Trouble:
    """What one look brought: the store's time, ids of jobs whose lease is over, ids of delayed jobs that are due."""

    now_ms: int
    lapsed: list[str]
    due: list[str]


@dataclass(frozen=True, slots=True)
class Held:
    """A job with the execution that holds it."""

    job: OurJob
    execution: str
    asked_to_stop: bool = False


class Attempt(Protocol):
    """One try to run a job, from the store's side. RQ's commands come along and run in the same step."""

    def end(self, commands: list[tuple[Any, ...]]) -> None: ...


class Recovery:
    """Stuck jobs of one deployment."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self._look = Script(client, "look_for_trouble")
        self._promote = Script(client, "pace", "promote")
        self._rescue = Script(client, "rescue")
        self._forget_expired = Script(client, "lists", "forget_expired")
        self._trim_registry = Script(client, "trim_registry")
        self.orphans = Orphans(client, keys)

    def look(self) -> Trouble:
        """Raises: StoreUnavailable, also where the store can be read and a lease not be renewed."""
        now_ms, lapsed, due = self._look([self._keys.leases, self._keys.delayed, self._keys.job("")], [MOST_AT_A_TIME])
        # What cannot be read is no id of ours, and is dropped when it is seen to.
        return Trouble(now_ms, *([each.decode(errors="replace") for each in ids] for ids in (lapsed, due)))

    def held(self, job_id: str) -> Held | None:
        """The job and its execution, if it runs. Raises: StoreUnavailable."""
        with errors_converted():
            fields: Any = self._client.hgetall(self._keys.job(job_id))
        if not fields or fields[b"status"] != b"running":
            return None
        return Held(job_from(job_id, fields), fields[b"execution"].decode(), b"stop" in fields)

    def drop_lease(self, job_id: str) -> None:
        """Forgets a lease whose job does not run. Raises: StoreUnavailable."""
        with errors_converted():
            self._client.zrem(self._keys.leases, job_id)

    def rq_job(self, job_id: str) -> Job | None:
        """RQ's part of a job, or None where there is none that can be read. Raises: StoreUnavailable."""
        with errors_converted():
            return readable_job(job_id, self._client)

    def end_attempt(self, held: Held, job: Job | None, attempt: Attempt, reason: str, retry_in_s: float | None) -> None:
        """Ends a lost attempt in RQ's books and, through `attempt`, in ours. Raises: Fenced, StoreUnavailable."""
        with errors_converted():
            if job is None:
                attempt.end([("DEL", Job.key_for(held.job.id))])
                return
            execution = self._rq_execution(held)
            with self._client.pipeline() as pipe:
                if retry_in_s is None:
                    note_failure(pipe, job, execution, "", reason)
                else:
                    note_retry(pipe, job, execution, Queue(job.origin, self._client), delayed=retry_in_s > 0)
                commands = commands_of(pipe)
            attempt.end(commands)

    def promote(self, job_id: str) -> bool:
        """Moves a delayed job that is due into its queue; False where that was done. Raises: StoreUnavailable."""
        with errors_converted():
            job = readable_job(job_id, self._client)
            commands: list[tuple[Any, ...]] = []
            if job is not None:
                with self._client.pipeline() as pipe:
                    note_queued(pipe, job, Queue(job.origin, self._client))
                    commands = commands_of(pipe)
        return bool(self._promote([self._keys.job(job_id), self._keys.delayed], [job_id, *flattened(commands)]))

    def taken(self, queue: str) -> list[str]:
        """Ids that workers took from `queue` and have not started; what is no id is taken out.

        Raises: StoreUnavailable.
        """
        key, ids = Queue(queue, self._client).intermediate_queue_key, []
        with errors_converted():
            entries: Any = self._client.lrange(key, 0, MOST_AT_A_TIME - 1)
            for entry in entries:
                job_id = as_id(entry)
                if job_id is None:
                    drop_entry(self._client, key, entry)
                else:
                    ids.append(job_id)
        return ids

    def rescue(self, queue: str, job_id: str) -> bool:
        """Puts a job that was taken and not started back to the head of its queue. Raises: StoreUnavailable."""
        lists = Queue(queue, self._client)
        names = [self._keys.job(job_id), lists.key, lists.intermediate_queue_key, Job.key_for(job_id)]
        return bool(self._rescue(names, [job_id]))

    def forget_expired(self) -> None:
        """Takes expired jobs out of the lists, those that expired first before the others. Raises: StoreUnavailable."""
        for _ in range(MOST_BATCHES):
            if not self._forget_expired([self._keys.expiring], [MOST_AT_A_TIME]):
                break

    def trim_registries(self, queue: str) -> None:
        """Takes expired jobs out of RQ's registries of what has ended. Raises: StoreUnavailable."""
        for registry in (FinishedJobRegistry, FailedJobRegistry):
            for _ in range(MOST_BATCHES):
                if self._trim_registry([registry.key_template.format(queue)], [MOST_AT_A_TIME]) < MOST_AT_A_TIME:
                    break

    def _rq_execution(self, held: Held) -> Execution:
        try:
            return Execution.fetch(held.execution, held.job.id, connection=self._client)
        except (ValueError, redis.ResponseError) as error:
            if isinstance(error, redis.ResponseError) and not is_wrong_type(error):
                raise
            return Execution(held.execution, held.job.id, connection=self._client)
