"""Queued jobs that can never run, since RQ's part of them or their entry in its queue is gone or over.

`rq empty` and RQ's other tools do that, a worker of plain RQ that serves our queue, and hands in the store. Judges only
what two looks have found so; looks at a bounded number of jobs and entries at a time.
"""

from __future__ import annotations

from typing import Any

from rq.intermediate_queue import IntermediateQueue
from rq.job import JobStatus

from aj.store.client import Client, errors_converted
from aj.store.keys import Keys
from aj.store.rq_classes import Job, Queue
from aj.store.scripts import Script

OVER = f" {JobStatus.CANCELED.value} {JobStatus.FAILED.value} {JobStatus.FINISHED.value} "
JOBS_AT_A_TIME = 100
# Entries of queues that one look goes through, which takes the store some 5 ms.
ENTRIES_AT_A_TIME = 100_000


class Orphans:
    """Goes through the active jobs of a deployment, in turn."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self._find = Script(client, "pace", "find_orphans")
        self._scan_from = 0
        self._suspects: list[str] = []

    def __call__(self) -> list[str]:
        """Jobs that were found so by this look and an earlier one. Raises: StoreUnavailable."""
        with errors_converted():
            found: Any = self._client.zrange(self._keys.active, self._scan_from, self._scan_from + JOBS_AT_A_TIME - 1)
            ids = [each.decode(errors="replace") for each in found]
        asked = self._suspects + [each for each in ids if each not in self._suspects]
        looked, orphans = self._look(asked)
        confirmed = [each for each in self._suspects if each in orphans]
        if looked < len(asked):
            self._scan_from += ids.index(asked[looked]) if asked[looked] in ids else 0
        else:
            self._scan_from = self._scan_from + len(ids) if len(ids) == JOBS_AT_A_TIME else 0
        self._suspects = self._suspects[looked:] + [each for each in orphans if each not in confirmed]
        return confirmed

    def _look(self, ids: list[str]) -> tuple[int, list[str]]:
        """How many of `ids` were looked at, and which can never run."""
        if not ids:
            return 0, []
        words = [self._keys.job(""), Job.redis_job_namespace_prefix, Queue.redis_queue_namespace_prefix]
        words += [IntermediateQueue.get_intermediate_queue_key(""), OVER, str(ENTRIES_AT_A_TIME)]
        looked, orphans = self._find([self._keys.delayed], [*words, *ids])
        return looked, [each.decode() for each in orphans]
