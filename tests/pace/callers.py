"""Callers that do as `Retry-After` says: one request when it is time, over connections that stay open.

They note what they were told and when they learnt of the end. Nothing is judged here.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import urllib3

from aj.clock import monotonic_s, now_ms

AT_ONCE = 24
LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Poll:
    """One request for a job's status, or the first, which submits it: what it said, and when its answer came.

    `told_s` is None at the end. `took_s` is from when it was due to its answer: what a busy machine costs.
    """

    at_ms: int
    took_s: float
    status: str
    position: int | None
    told_s: int | None


@dataclass(frozen=True, slots=True)
class Learnt:
    """A job that its caller has seen ended. Times in seconds; `whole_s` from its submission to its end.

    `seen` begins with the submission.
    """

    job_id: str
    whole_s: float
    ran_s: float
    late_s: float
    seen: tuple[Poll, ...]

    @property
    def polls(self) -> int:
        return len(self.seen) - 1

    @property
    def slow_s(self) -> float:
        """How much of the lateness a busy machine can have cost: the last answer, and the one before, which said when
        to come; that may even have come after the end, where the outcome was still to be written."""
        *_, before, last = self.seen
        unwritten_s = self.late_s - (last.at_ms - before.at_ms) / 1000
        return last.took_s + max(before.took_s, unwritten_s)

    def __str__(self) -> str:
        """The whole story, for a person who asks why."""
        learnt_ms = self.seen[-1].at_ms
        steps = []
        for each in self.seen:
            at_s = (each.at_ms - learnt_ms) / 1000 + self.whole_s + self.late_s
            place = "" if each.position is None else f" at {each.position}"
            told = "" if each.told_s is None else f", {each.told_s} s told"
            steps.append(f"{at_s:.1f} s {each.status}{place} (took {each.took_s:.2f} s){told}")
        return f"{self.whole_s:.2f} s in all, ran {self.ran_s:.2f} s, {self.late_s:.2f} s late: {'; '.join(steps)}"


@dataclass(slots=True)
class Followed:
    """A job and what its caller knows of it; `due_s` is when to ask next, on the monotonic clock."""

    job_id: str
    due_s: float
    seen: list[Poll]
    end: Future[Learnt] = field(default_factory=Future)


class Callers:
    """Submits jobs and follows them. At most `AT_ONCE` requests are under way."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._pool = urllib3.HTTPConnectionPool(str(where.hostname), where.port, maxsize=2 * AT_ONCE)
        self._due: list[tuple[float, int, Followed]] = []
        self._count = itertools.count()
        self._changed, self._closing = threading.Condition(), False
        self._threads = ThreadPoolExecutor(AT_ONCE)
        self._scheduler = threading.Thread(target=self._schedule)
        self._scheduler.start()

    def submit(self, task: str, seconds: float) -> Followed:
        begun_s = monotonic_s()
        answer = self._pool.request("POST", "/jobs", json={"task": task, "seconds": seconds}, timeout=LIMIT_S)
        at_s = monotonic_s()
        assert answer.status == 202, answer.data
        first = Poll(now_ms(), at_s - begun_s, "accepted", None, int(answer.headers["Retry-After"]))
        return Followed(answer.json()["job_id"], at_s + (first.told_s or 0), [first])

    def follow(self, job: Followed) -> None:
        """Asks for the job until `job.end` is there, each time when the last answer said so."""
        with self._changed:
            heapq.heappush(self._due, (job.due_s, next(self._count), job))
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._scheduler.join()
        self._threads.shutdown()

    def _schedule(self) -> None:
        with self._changed:
            while not self._closing:
                wait_s = self._due[0][0] - monotonic_s() if self._due else None
                if wait_s is None or wait_s > 0:
                    self._changed.wait(wait_s)
                else:
                    self._threads.submit(self._ask, heapq.heappop(self._due)[2])

    def _ask(self, job: Followed) -> None:
        try:
            answer = self._pool.request("GET", f"/jobs/{job.job_id}", timeout=LIMIT_S)
            at_ms, at_s = now_ms(), monotonic_s()
            assert answer.status == 200, answer.data
            document, told = answer.json(), answer.headers.get("Retry-After")
            told_s = None if told is None else int(told)
            job.seen.append(Poll(at_ms, at_s - job.due_s, document["status"], document.get("position"), told_s))
            if told_s is None:
                job.end.set_result(_learnt(job, document))
            else:
                job.due_s = at_s + told_s
                self.follow(job)
        except BaseException as error:
            job.end.set_exception(error)


def _learnt(job: Followed, document: dict[str, Any]) -> Learnt:
    assert document["status"] == "succeeded", document
    created_s, started_s, ended_s = (
        datetime.fromisoformat(document[name]).timestamp() for name in ("created_at", "started_at", "ended_at")
    )
    late_s = job.seen[-1].at_ms / 1000 - ended_s
    return Learnt(job.job_id, ended_s - created_s, ended_s - started_s, late_s, tuple(job.seen))
