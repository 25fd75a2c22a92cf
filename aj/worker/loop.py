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
from typing import Any

import redis
import rq.queue
from rq import worker_registration
from rq.exceptions import DequeueTimeout
from rq.serializers import JSONSerializer
from rq.suspension import WORKERS_SUSPENDED
from rq.worker import Worker as RqWorker
from rq.worker import WorkerStatus

from aj.clock import monotonic_s
from aj.errors import StoreUnavailable
from aj.processes import Stop
from aj.store import Client, refuse_unfit
from aj.store.keys import WORKER_FIELD
from aj.store.rq_classes import Job, Queue

log = logging.getLogger("aj.worker")

DEQUEUE_WAIT_S = 1
LOOK_INTERVAL_S = 1
MONITOR_INTERVAL_S = 1
LONGEST_PAUSE_S = 10.0
WORKER_LIFE_S = 30
LISTEN_AGAIN_S = 2.0


class WorkLoop(RqWorker):
    """Waits for jobs of one queue and hands each to `take_up`."""

    job_class = Job
    queue_class: type[rq.queue.Queue] = Queue
    connection: Client

    def __init__(self, queue: str, client: Client, result_ttl_s: int, prefix: str) -> None:
        self._prefix = prefix
        self._stopping = Stop()
        self._next_look_s = 0.0
        self._is_suspended = False
        self.queue = Queue(queue, client)
        super().__init__(
            [self.queue],
            name=f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}",
            connection=client,
            serializer=JSONSerializer,
            default_result_ttl=result_ttl_s,
            job_monitoring_interval=MONITOR_INTERVAL_S,
            log_job_description=False,
        )

    def _set_ip_address(self, connection: redis.Redis) -> None:
        """Nothing yet: RQ asks the store for it while a worker is made, and the store may be away then."""
        self.ip_address = "unknown"

    def run(self) -> None:
        """Works until a signal asks it to stop; a job under way then comes to its end first.

        A store that is away is waited for, with growing pauses. Raises: SettingsError: it is unfit.
        """
        self._install_signal_handlers()
        born, pause_s = False, 0.1
        while not self._stopping.is_set():
            try:
                if not born:
                    refuse_unfit(self.connection)
                    self.bootstrap()
                    born = True
                self.work_once(goes_on=True)
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
        """Says that this worker lives, whose it is, and all that RQ knows of it: the store may have forgotten it.

        RQ gives a worker many minutes after its last sign of life; an operator wants to know sooner.
        """
        store: Any = pipeline if pipeline is not None else self.connection
        if self.birth_date is not None:
            store.hset(self.key, mapping={**self.serialize(), "state": self.get_state(), WORKER_FIELD: self._prefix})
            worker_registration.register(self, store)
        super().heartbeat(WORKER_LIFE_S, pipeline=pipeline)

    @property
    def dequeue_timeout(self) -> int:
        return DEQUEUE_WAIT_S

    def bootstrap(self, *args: object, **kwargs: object) -> None:
        """Registers this worker, and drops the names of those that died without a word. Safe to repeat."""
        super()._set_ip_address(self.connection)
        super().bootstrap(logging_level=None)
        worker_registration.clean_worker_registry(self.queues[0])
        self.set_state(WorkerStatus.IDLE)

    def register_birth(self) -> None:
        """What stands under our name, which nobody else has, is of our own try that was cut off; RQ would refuse."""
        self.connection.delete(self.key)
        super().register_birth()

    def subscribe(self) -> None:
        """Listens for RQ's commands, once."""
        if self.pubsub_thread is None:
            super().subscribe()

    def _pubsub_exception_handler(
        self, exc: Exception, pubsub: redis.client.PubSub, pubsub_thread: redis.client.PubSubWorkerThread
    ) -> None:
        """Listens again after a pause; RQ's own gives up for ever where the store does not answer in time."""
        log.warning("commands cannot be heard (%s); listening again in %.0f s", exc, LISTEN_AGAIN_S)
        threading.Event().wait(LISTEN_AGAIN_S)  # not the one that a signal sets: a job may run on for long

    def work_once(self, *, goes_on: bool = False) -> bool:
        """Waits a second for a job and runs it; says whether there was one. With `goes_on` also those behind it."""
        if monotonic_s() >= self._next_look_s:
            self._next_look_s = monotonic_s() + LOOK_INTERVAL_S
            if self._look():
                self._stopping.wait(LOOK_INTERVAL_S)
                return False
        try:
            while not self.take_up(self._next_entry(), goes_on=goes_on):
                pass
        except DequeueTimeout:
            return False
        return True

    def _next_entry(self) -> str:
        """Moves the head of the queue to RQ's intermediate list. Raises: DequeueTimeout: none came in time."""
        found: tuple[str, bytes] = Queue.lmove(self.connection, self.queue.key, DEQUEUE_WAIT_S)
        return found[1].decode()

    def take_up(self, job_id: str, *, goes_on: bool) -> bool:
        """Runs a job that was moved out of the queue; False where RQ knows nothing of it, and the next one counts."""
        raise NotImplementedError

    @property
    def may_go_on(self) -> bool:
        """Whether another job may be taken without a look at what was asked of this worker meanwhile."""
        return not self._stopping.is_set() and monotonic_s() < self._next_look_s

    def _look(self) -> bool:
        """Says that this worker lives; whether workers are suspended."""
        with self.connection.pipeline(transaction=False) as pipe:
            self.heartbeat(pipeline=pipe)
            pipe.exists(WORKERS_SUSPENDED)
            is_suspended = bool(pipe.execute()[-1])
        if is_suspended != self._is_suspended:
            self._is_suspended = is_suspended
            self._tell_suspension()
        return is_suspended

    def _tell_suspension(self) -> None:
        """Says that it began or ended: in the log, and in RQ's books, where `rq info` and the dashboard read it."""
        if self._is_suspended:
            log.warning("suspended: no job of %s is taken until `rq resume`", self.queue.name)
        else:
            log.info("no longer suspended: jobs of %s are taken again", self.queue.name)
        self.set_state(WorkerStatus.SUSPENDED if self._is_suspended else WorkerStatus.IDLE)

    def _leave(self) -> None:
        try:
            self.teardown()
        except redis.RedisError as error:
            log.warning("left without a word to the store: %s", error)
