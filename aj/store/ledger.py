"""RQ's own books for the end of an attempt, filled into a pipeline with RQ's own code.

What is filled in is sent by the caller, in one step with our status. One place, so that a worker and a sweep leave the
same traces.

An ended job leaves its hash and an entry in a registry, and not the stream in which RQ keeps results: that takes
4 KiB for each job, whatever stands in it, and what it would say stands in our hash.
"""

from __future__ import annotations

import json

from redis.client import Pipeline
from rq.executions import Execution
from rq.job import JobStatus
from rq.utils import now

from aj.store.rq_classes import Job, Queue

# By default the longest field with which a hash stays compact.
SHORT_BYTES = 64


def note_start(pipe: Pipeline, job: Job, worker_name: str, ttl_s: int) -> Execution:
    """The job runs, under an execution of which RQ's note lives for so long. Of RQ these are two steps."""
    execution = Execution.create(job, ttl_s, pipeline=pipe, worker_name=worker_name)
    job.prepare_for_execution(worker_name, pipeline=pipe)
    pipe.persist(job.key)
    return execution


def note_success(pipe: Pipeline, job: Job, execution: Execution, worker_name: str, ttl_s: int) -> None:
    """The job succeeded. RQ keeps no result: ours is the one that is served."""
    job.ended_at = now()
    job.set_status(JobStatus.FINISHED, pipeline=pipe)
    job.save(pipeline=pipe)
    job.finished_job_registry.add(job, ttl_s, pipe)
    job.cleanup(ttl_s, pipeline=pipe, remove_from_queue=False)
    execution.delete(job=job, pipeline=pipe)


def note_failure(pipe: Pipeline, job: Job, execution: Execution, worker_name: str, reason: str) -> None:
    """The job failed for good. `reason` is its error as JSON, which RQ's tools show in short."""
    _note_failed(pipe, job, reason)
    execution.delete(job=job, pipeline=pipe)


def note_retry(pipe: Pipeline, job: Job, execution: Execution, queue: Queue, *, delayed: bool) -> None:
    """The job runs again: at once from its queue, or when a sweep moves it there."""
    execution.delete(job=job, pipeline=pipe)
    pipe.zrem(job.failed_job_registry.key, job.id)
    if delayed:
        job.set_status(JobStatus.SCHEDULED, pipeline=pipe)
    else:
        note_queued(pipe, job, queue)


def note_queued(pipe: Pipeline, job: Job, queue: Queue) -> None:
    """The job stands in its queue, the push being the last command."""
    queue._enqueue_job(job, pipeline=pipe)


def note_cancelled(pipe: Pipeline, job: Job, queue: Queue, reason: str) -> None:
    """The job leaves its queue and never runs. Its entry is looked for from the end, where young jobs stand."""
    pipe.lrem(queue.key, -1, job.id)
    _note_failed(pipe, job, reason)


def _note_failed(pipe: Pipeline, job: Job, reason: str) -> None:
    error = json.loads(reason)
    in_short = f"{error['type']}: {error['detail']}".encode()[:SHORT_BYTES].decode(errors="ignore")
    job.ended_at = now()
    job.set_status(JobStatus.FAILED, pipeline=pipe)
    job.failed_job_registry.add(job, job.failure_ttl, in_short, pipe)
