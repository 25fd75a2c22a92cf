"""RQ's books for what happens to most jobs: a job is taken, and it succeeds. How one fails stands in `ledger`.

RQ's own code makes the commands, once for a worker, for a job and an execution that do not exist. Where their names and
times stand, the template has a mark, which `books.lua` fills for each job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rq.executions import Execution
from rq.utils import current_timestamp, now, utcformat
from rq.worker import WorkerStatus

from aj.job import new_job_id
from aj.store.client import Client, commands_of
from aj.store.ledger import note_start, note_success
from aj.store.rq_classes import Job

# Below it an integer is a duration, from it on a time.
FIRST_SECOND = 1_000_000_000
Commands = Sequence[tuple[Any, ...]]
# Commands, and the name of the mark for what stands in them.
Marked = tuple[Commands, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as RQ writes it: in seconds, and in the form of RFC 3339."""

    s: str
    text: str

    @classmethod
    def of_now(cls) -> Moment:
        at = now()
        return cls(repr(at.timestamp()), utcformat(at))  # as redis-py sends a number


class Books:
    """Templates of RQ's commands for the jobs that one worker takes from one queue.

    `worker_key` is RQ's of the worker, and `ttl_s` is how long RQ's note of an execution lives.
    """

    def __init__(self, client: Client, queue: str, worker_name: str, worker_key: str, ttl_s: int) -> None:
        self._client, self._queue, self._ttl_s = client, queue, ttl_s
        self._worker_name, self.worker_key = worker_name, worker_key

    def of_start(self) -> str:
        """For a job that is taken."""

        def make() -> Marked:
            job, execution, commands = self._start()
            assert job.started_at is not None
            times = {repr(execution.created_at.timestamp()): "now", utcformat(job.started_at): "at"}
            return [self._state(WorkerStatus.BUSY), *commands], {**times, job.id: "job", execution.id: "execution"}

        return _template(make)

    def of_success(self, result_ttl_s: int) -> str:
        """For a job that succeeds, and can be read for so long."""

        def make() -> Marked:
            job, execution, _ = self._start()
            with self._client.pipeline() as pipe:
                pipe.hincrby(self.worker_key, "successful_job_count", 1)
                note_success(pipe, job, execution, self._worker_name, result_ttl_s)
                commands = commands_of(pipe)
            assert job.ended_at is not None
            times = {repr(execution.created_at.timestamp()): "began", repr(job.ended_at.timestamp()): "now"}
            times[utcformat(job.ended_at)] = "at"
            return commands, {**times, job.id: "job", execution.id: "execution"}

        return _template(make)

    def of_idleness(self) -> str:
        """For a worker that has no job."""
        return _template(lambda: ([self._state(WorkerStatus.IDLE)], {}))

    def _start(self) -> tuple[Job, Execution, Commands]:
        job = Job(new_job_id(0), self._client)
        job.origin = self._queue
        with self._client.pipeline() as pipe:
            execution = note_start(pipe, job, self._worker_name, self._ttl_s)
            return job, execution, commands_of(pipe)

    def _state(self, state: WorkerStatus) -> tuple[Any, ...]:
        return ("HSET", self.worker_key, "state", state)


def _template(make: Callable[[], Marked]) -> str:
    """The commands that `make` gives, as JSON. What it names is marked with its name, times with seconds."""
    while True:
        at_s = current_timestamp()
        commands, names = make()
        if current_timestamp() == at_s:  # else RQ's times may be of two seconds
            break

    def marked(word: Any) -> str:
        if isinstance(word, int) and word >= FIRST_SECOND:
            return f"<aj:{word - at_s}>"
        text = word.decode() if isinstance(word, bytes) else str.__str__(word) if isinstance(word, str) else repr(word)
        if text in names:  # a time is a word of its own, and may begin as another one does
            return f"<aj:{names[text]}>"
        for found, name in names.items():
            text = text.replace(found, f"<aj:{name}>")
        return text

    return json.dumps([[marked(word) for word in command] for command in commands])
