"""What RQ would send to enqueue a job: made by RQ's own code once for each kind of job, then filled in for each job.

RQ's commands for two jobs of a kind differ in their id, their payload and their times, and to make them costs RQ more
than all the rest of a submission. Holds words and sends nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rq.serializers import JSONSerializer
from rq.utils import now, utcformat

from aj.job import new_job_id
from aj.store.client import Client, commands_of
from aj.store.rq_classes import Job, Queue
from aj.store.scripts import Word, flattened

FILLED = {"data": "data", "created_at": "now", "enqueued_at": "now"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What RQ's commands depend on beside the job itself: seconds, and the name that RQ has for the task."""

    queue: str
    name: str
    timeout_s: int
    result_ttl_s: int


class Enqueue:
    """RQ's commands for jobs of one kind."""

    def __init__(self, client: Client, kind: Kind) -> None:
        mark = new_job_id(0)  # a fresh one, which is nothing else's name
        self._name, commands = kind.name, _commands(client, kind, mark)
        self._words, marked = flattened(commands), {mark: "id", Job.key_for(mark): "key"}
        self._slots: list[tuple[int, str]] = []
        at = 0
        for command in commands:
            at += 1  # the count of the words
            self._slots += [(at + place, slot) for place, slot in enumerate(map(marked.get, command)) if slot]
            if command[0] == "HSET":
                names = command[2::2]
                self._slots += [
                    (at + 3 + 2 * place, FILLED[each]) for place, each in enumerate(names) if each in FILLED
                ]
            at += len(command)

    def __call__(self, job_id: str, params: Mapping[str, Any]) -> list[Word]:
        """The commands for one job as a script takes them; the queue push comes last."""
        payload = JSONSerializer.dumps((self._name, None, [], dict(params)))  # type: ignore[no-untyped-call]
        fills: dict[str, Word] = {"id": job_id, "key": Job.key_for(job_id), "data": zlib.compress(payload)}
        fills["now"] = utcformat(now())
        words = self._words.copy()
        for at, slot in self._slots:
            words[at] = fills[slot]
        return words


def _commands(client: Client, kind: Kind, job_id: str) -> list[tuple[Any, ...]]:
    """`multi()` comes first: RQ calls it too and refuses a pipeline that holds commands. The description is a
    constant, since RQ writes it to its log. Everything else that RQ offers is left out on purpose: its `ttl`,
    `retry`, callbacks and dependencies each break a promise of the contract.
    """
    with client.pipeline() as pipe:
        pipe.multi()
        Queue(kind.queue, client).enqueue_call(
            kind.name,
            kwargs={},
            job_id=job_id,
            timeout=kind.timeout_s,
            result_ttl=kind.result_ttl_s,
            failure_ttl=kind.result_ttl_s,
            description=kind.name,
            pipeline=pipe,
        )
        return commands_of(pipe)
