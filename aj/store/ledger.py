"""RQ's own books for the end of an attempt, filled into a pipeline with RQ's own code.

What is filled in is sent by the caller, in one step with our status. One place, so that a worker and a sweep leave the
same traces.
"""

from __future__ import annotations

from redis.client import Pipeline
from rq.executions import Execution
from rq.job import JobStatus
from rq.utils import current_timestamp, now

from aj.store.rq_classes import Job, Queue


def note_start(pipe: Pipeline, job: Job, worker_name: str, ttl_s: int) -> Execution:
    """The job runs, under an execution of which RQ's note lives for so long. Of RQ these are two steps."""
    execution = Execution.create(job, ttl_s, pipeline=pipe, worker_name=worker_name)
    job.prepare_for_execution(worker_name, pipeline=pipe)
    pipe.persist(job.key)
    return execution


def note_success(pipe: Pipeline, job: Job, execution: Execution, worker_name: str, ttl_s: int) -> None:
    """The job succeeded. RQ keeps no result: ours is the one that is served."""
    job.ended_at = now()
    job._handle_success(ttl_s, pipe, worker_name, execution.id, execution.created_at, job.ended_at)
    job.cleanup(ttl_s, pipeline=pipe, remove_from_queue=False)
    _close(pipe, job, execution, job.finished_job_registry.key)


def note_failure(pipe: Pipeline, job: Job, execution: Execution, worker_name: str, reason: str) -> None:
    """The job failed for good; `reason` is shown by RQ's tools."""
    job.ended_at = now()
    job.set_status(JobStatus.FAILED, pipeline=pipe)
    job._handle_failure(reason, pipe, worker_name, execution.id, execution.created_at, job.ended_at)
    _close(pipe, job, execution, job.failed_job_registry.key)


def note_retry(pipe: Pipeline, job: Job, execution: Execution, queue: Queue, *, delayed: bool) -> None:
    """The job runs again: at once from its queue, or when a sweep moves it there."""
    _close(pipe, job, execution, job.failed_job_registry.key)
    pipe.zrem(job.failed_job_registry.key, job.id)
    if delayed:
        job.set_status(JobStatus.SCHEDULED, pipeline=pipe)
    else:
        note_queued(pipe, job, queue)


def note_queued(pipe: Pipeline, job: Job, queue: Queue) -> None:
    """The job stands in its queue, the push being the last command."""
    queue._enqueue_job(job, pipeline=pipe)


def _close(pipe: Pipeline, job: Job, execution: Execution, registry_key: str) -> None:
    execution.delete(job=job, pipeline=pipe)
    # RQ trims this list in its maintenance, which we do not run: it may fail jobs that are well.
    pipe.zremrangebyscore(registry_key, "-inf", current_timestamp())


def note_cancelled(pipe: Pipeline, job: Job, queue: Queue, reason: str) -> None:
    """The job leaves its queue and never runs. Its entry is looked for from the end, where young jobs stand."""
    job.ended_at = now()
    pipe.lrem(queue.key, -1, job.id)
    job.set_status(JobStatus.FAILED, pipeline=pipe)
    job._handle_failure(reason, pipe)
    pipe.zremrangebyscore(job.failed_job_registry.key, "-inf", current_timestamp())
