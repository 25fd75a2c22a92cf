"""What RQ would send to enqueue a job: made by RQ's own code once for each kind of job, then filled in for each job.

RQ's commands for two jobs of a kind differ in their id, their payload and their times, and to make them costs RQ more
than all the rest of a submission. Holds words and sends nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rq.serializers import JSONSerializer
from rq.utils import now

from aj.job import new_job_id
from aj.store.client import Client, commands_of
from aj.store.rq_classes import Job, Queue
from aj.store.scripts import Word

# Where `submit.lua` finds the words that differ from job to job, counted from 1.
ID, KEY, DATA, NOW = 1, 12, 13, 14
# RQ compresses every payload and reads either form. To compress takes longer than all else here, 6 % of what a
# submission costs a process, and makes what is small no smaller.
SMALL_BYTES = 256
FILLED = {"data": DATA, "created_at": NOW, "enqueued_at": NOW}


@dataclass(frozen=True, slots=True)
class Kind:
    """What RQ's commands depend on beside the job itself: seconds, and the name that RQ has for the task."""

    queue: str
    name: str
    timeout_s: int
    result_ttl_s: int


class Enqueue:
    """RQ's commands for jobs of one kind.

    `commands` is JSON, the queue push last: each command a list of its words, with a number in the place of a word
    that differs from job to job. Called it gives those words for one job, from the one at `KEY` on.
    """

    def __init__(self, client: Client, kind: Kind) -> None:
        self._name = kind.name
        mark = new_job_id(0)  # a fresh one, which is nothing else's name
        self.commands = json.dumps([_with_gaps(command, mark) for command in _commands(client, kind, mark)])

    def __call__(self, job_id: str, params: Mapping[str, Any]) -> list[Word]:
        payload = JSONSerializer.dumps((self._name, None, [], dict(params)))  # type: ignore[no-untyped-call]
        data = payload if len(payload) < SMALL_BYTES else zlib.compress(payload)
        return [Job.key_for(job_id), data, now().isoformat(timespec="microseconds")[:26] + "Z"]


def _with_gaps(command: tuple[Any, ...], mark: str) -> list[Any]:
    marked = {mark: ID, Job.key_for(mark): KEY}
    words = [str(word) if isinstance(word, int) else marked.get(word, word) for word in command]
    if command[0] == "HSET":
        for at, name in enumerate(command[2::2]):
            words[3 + 2 * at] = FILLED.get(name, words[3 + 2 * at])
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
