"""The worker's loop: registered with RQ, one job after the other, until a signal says stop.

RQ's own loop is replaced: it strands a job when SIGTERM comes between two commands, quits where Redis is away,
and blocks for minutes. One worker serves exactly one queue, since with two RQ pops without its intermediate list,
and a crash then loses the job. What is done with a job stands in `rq_worker`.
"""

# Our own job and queue classes narrow RQ's, and no others ever reach this worker.
# mypy: disable-error-code="override, no-untyped-call"

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from types import FrameType

import redis
import rq.queue
from rq import worker_registration
from rq.exceptions import DequeueTimeout
from rq.serializers import JSONSerializer
from rq.suspension import is_suspended
from rq.worker import Worker as RqWorker

from aj.clock import monotonic_s
from aj.errors import StoreUnavailable
from aj.store import Client
from aj.store.rq_classes import Job, Queue, UnreadableJob

log = logging.getLogger("aj.worker")

DEQUEUE_WAIT_S = 1
LOOK_INTERVAL_S = 1
MONITOR_INTERVAL_S = 1
LONGEST_PAUSE_S = 10.0
WORKER_LIFE_S = 30


class WorkLoop(RqWorker):
    """Takes jobs from one queue and hands each to `execute_job`."""

    job_class = Job
    queue_class: type[rq.queue.Queue] = Queue
    connection: Client

    def __init__(self, queue: str, client: Client, result_ttl_s: int) -> None:
        self._stopping = threading.Event()
        self._next_look_s = 0.0
        super().__init__(
            [Queue(queue, client)],
            name=f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}",
            connection=client,
            serializer=JSONSerializer,
            default_result_ttl=result_ttl_s,
            job_monitoring_interval=MONITOR_INTERVAL_S,
            log_job_description=False,
        )

    def refuse_unreadable(self, job_id: str) -> None:
        """Sees to a job of which RQ's part is broken."""
        raise NotImplementedError

    def run(self) -> None:
        """Works until a signal asks it to stop; a job under way then comes to its end first.

        A store that is away is waited for, with growing pauses.
        """
        self._install_signal_handlers()
        born, pause_s = False, 0.1
        while not self._stopping.is_set():
            try:
                if not born:
                    self.bootstrap()
                    born = True
                self.work_once()
                pause_s = 0.1
            except (redis.RedisError, StoreUnavailable) as error:
                log.warning("the store cannot be used (%s); trying again in %.1f s", error, pause_s)
                self._stopping.wait(pause_s)
                pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
        if born:
            self._leave()

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """Only notes the wish: an exception here could strand a job between RQ's lists."""
        self._stopping.set()

    def heartbeat(self, timeout: int | None = None, pipeline: redis.client.Pipeline | None = None) -> None:
        """RQ gives a worker many minutes after its last sign of life; an operator wants to know sooner."""
        super().heartbeat(WORKER_LIFE_S, pipeline=pipeline)

    @property
    def dequeue_timeout(self) -> int:
        return DEQUEUE_WAIT_S

    def bootstrap(self, *args: object, **kwargs: object) -> None:
        """Registers this worker, and drops the names of those that died without a word."""
        super().bootstrap(logging_level=None)
        worker_registration.clean_worker_registry(self.queues[0])

    def work_once(self) -> bool:
        """Waits a second for a job and runs it; says whether there was one."""
        if monotonic_s() >= self._next_look_s:
            self._next_look_s = monotonic_s() + LOOK_INTERVAL_S
            self.heartbeat()
            if is_suspended(self.connection):
                self._stopping.wait(LOOK_INTERVAL_S)
                return False
        try:
            found = Queue.dequeue_any(
                self.queues, DEQUEUE_WAIT_S, self.connection, job_class=Job, serializer=JSONSerializer
            )
        except DequeueTimeout:
            return False
        except UnreadableJob as error:
            log.error("%s", error)
            self.refuse_unreadable(error.job_id)
            return True
        assert found is not None
        job, queue = found
        assert isinstance(job, Job)
        assert isinstance(queue, Queue)
        self.execute_job(job, queue)
        return True

    def _leave(self) -> None:
        try:
            self.teardown()
        except redis.RedisError as error:
            log.warning("left without a word to the store: %s", error)
