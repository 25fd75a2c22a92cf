"""RQ's queue and job, as we have them.

Whatever the command line or a default says, these use JSON and each other, never pickle. A job names a task;
it never holds a dotted path to import.
"""

from __future__ import annotations

import logging
from typing import Any

import redis
import rq.job
import rq.queue
from rq.exceptions import DequeueTimeout, NoSuchJobError
from rq.intermediate_queue import IntermediateQueue
from rq.job import JobStatus
from rq.serializers import JSONSerializer
from rq.utils import utcformat

from aj.errors import AjError
from aj.store.client import is_wrong_type

log = logging.getLogger("aj.store")
MIN_REDIS = (6, 2, 0)
ENDS = (JobStatus.FINISHED, JobStatus.FAILED)
# What RQ wants to know of a job while it is not over.
SPENT = ("enqueued_at", "last_heartbeat", "worker_name", "timeout", "result_ttl", "failure_ttl")
# RQ reads no job without a payload. This is one in its form, and names no task.
NO_ARGUMENTS = '["ended",null,[],{}]'


class UnreadableJob(AjError):
    """What RQ keeps of a job cannot be read."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"RQ's part of job {job_id} cannot be read")
        self.job_id = job_id


class Job(rq.job.Job):
    """RQ's job, with JSON."""

    def __init__(self, id: str | None = None, connection: redis.Redis | None = None, serializer: Any = None) -> None:
        super().__init__(id, connection=connection, serializer=JSONSerializer)

    def make_readable(self) -> bool:
        """Whether the payload can be read. RQ asks for the name again and again, so an unreadable one gets another."""
        try:
            return isinstance(self.func_name, str) and isinstance(self.kwargs, dict)
        except Exception as error:
            log.warning("the payload of job %s cannot be read: %s", self.id, type(error).__name__)
        self.func_name, self.args, self.kwargs = "unreadable", [], {}
        return False

    def set_status(self, status: rq.job.JobStatus, pipeline: redis.client.Pipeline | None = None) -> None:
        """At the end of a job `save` follows, which writes it."""
        if status in ENDS and self.ended_at is not None and pipeline is not None:
            self._status = status
        else:
            super().set_status(status, pipeline=pipeline)

    def save(
        self, pipeline: redis.client.Pipeline | None = None, include_meta: bool = True, include_result: bool = True
    ) -> None:
        """At the end of a job only what that changed: it says how it ended, and loses what was for its run.

        One that succeeded loses its arguments too. Of one that failed, whoever looks into it may want them.
        """
        if self._status in ENDS and self.ended_at is not None and pipeline is not None:
            ended: dict[Any, Any] = {"status": self._status, "ended_at": utcformat(self.ended_at)}
            ended |= {"data": NO_ARGUMENTS} if self._status is JobStatus.FINISHED else {"exc_info": self._exc_info}
            pipeline.hset(self.key, mapping=ended)
            pipeline.hdel(self.key, *SPENT)
        else:
            super().save(pipeline, include_meta, include_result)

    def cleanup(
        self, ttl: int | None = None, pipeline: redis.client.Pipeline | None = None, remove_from_queue: bool = True
    ) -> None:
        """The life of an ended job. RQ sets it for its dependents and dependencies too, of which ours have none."""
        if ttl is not None and ttl > 0 and pipeline is not None:
            pipeline.expire(self.key, ttl)
        else:
            super().cleanup(ttl, pipeline, remove_from_queue)

    def to_dict(self, include_meta: bool = True, include_result: bool = True) -> dict[str, Any]:
        """Without the fields in which there is nothing: RQ reads those that are absent as empty ones."""
        return {name: value for name, value in super().to_dict(include_meta, include_result).items() if value != ""}


class Queue(rq.queue.Queue):
    """RQ's queue, with our job class and JSON."""

    job_class = Job

    def __init__(self, name: str, connection: redis.Redis, **options: Any) -> None:
        super().__init__(name, connection=connection, **{**options, "job_class": Job, "serializer": JSONSerializer})

    @classmethod
    def lmove(cls, connection: redis.Redis, queue_key: str, timeout: int | None) -> Any:
        """Takes the next entry. One that is no text, of which RQ's worker would die, is taken out: none of ours is.

        Raises: DequeueTimeout: there was none that can be a job.
        """
        found = super().lmove(connection, queue_key, timeout)
        if found is not None and as_id(found[1]) is None:
            drop_entry(connection, IntermediateQueue.get_intermediate_queue_key(queue_key), found[1])
            raise DequeueTimeout(timeout, queue_key)
        return found

    @classmethod
    def _fetch_dequeued_job(
        cls, connection: redis.Redis, queue_key: str, job_id: str, *more: Any, **options: Any
    ) -> tuple[Job, Queue] | None:
        """Drops an id whose job is gone, which RQ would leave in its intermediate list for ever.

        Raises: UnreadableJob: RQ keeps something of the job that cannot be read; its error would stop the worker.
        """
        try:
            found: Any = super()._fetch_dequeued_job(connection, queue_key, job_id, *more, **options)
        except Exception as error:
            if isinstance(error, redis.RedisError) and not is_wrong_type(error):
                raise
            raise UnreadableJob(job_id) from error
        if found is None:
            if connection.exists(Job.key_for(job_id)):
                raise UnreadableJob(job_id)
            connection.lrem(IntermediateQueue.get_intermediate_queue_key(queue_key), 1, job_id)
        return found  # type: ignore[no-any-return]

    def taken(self, job_id: str) -> tuple[Job, Queue] | None:
        """The job of an id that a script of ours has taken from the queue. Raises: UnreadableJob."""
        return self._fetch_dequeued_job(self.connection, self.key, job_id, job_class=Job, serializer=JSONSerializer)

    def get_redis_server_version(self) -> tuple[int, int, int]:
        """The least version that we accept. RQ would ask the server, one round trip more for each submission."""
        return MIN_REDIS


def readable_job(job_id: str, connection: redis.Redis) -> Job | None:
    """RQ's part of a job, or None where there is none or it cannot be read. Raises: redis.RedisError."""
    try:
        job = Job.fetch(job_id, connection=connection)
    except NoSuchJobError:
        return None
    except Exception as error:
        if isinstance(error, redis.RedisError) and not is_wrong_type(error):
            raise
        log.warning("RQ's part of job %s cannot be read: %s", job_id, type(error).__name__)
        return None
    assert isinstance(job, Job)
    return job


def as_id(entry: bytes) -> str | None:
    """An entry of RQ's lists as text, or None where it is none and so no id that anybody gave."""
    try:
        return entry.decode()
    except UnicodeDecodeError:
        return None


def drop_entry(connection: redis.Redis, key: str, entry: bytes) -> None:
    """Takes an entry that is no id out of a list of RQ's."""
    log.error("the entry %.100r of %s is no id of a job; it is taken out", entry, key)
    connection.lrem(key, 1, entry)  # type: ignore[arg-type]
