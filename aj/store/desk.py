"""The desk of a worker: it takes jobs from one queue, one at a time, and the next one in the step that ends the last.

What is asked may be asked again, under the same execution, when an answer was lost: nothing is taken twice then, and
what was taken is not forgotten. Holds no job.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rq.serializers import JSONSerializer

from aj.job import Job
from aj.store.books import Books, Moment
from aj.store.found import job_from
from aj.store.keys import Keys
from aj.store.rq_classes import Job as RqJob
from aj.store.rq_classes import Queue
from aj.store.scripts import Word


@dataclass(frozen=True, slots=True)
class Claim:
    """A job in the hands of one execution. `only_lapsed` ends the attempt only while its lease is over."""

    job_id: str
    execution: str
    only_lapsed: bool = False

    @property
    def words(self) -> tuple[str, str, str]:
        return self.execution, self.job_id, "1" if self.only_lapsed else "0"


@dataclass(frozen=True, slots=True)
class Taken:
    """A job that was taken, as it was then: `now_ms` on the store's clock, `began` on RQ's.

    `params` are None where RQ's part of the job is not as we have written it.
    """

    job: Job
    claim: Claim
    now_ms: int
    began: Moment
    params: dict[str, Any] | None
    timeout_s: int


@dataclass(frozen=True, slots=True)
class Success:
    """RQ's commands for a job that has succeeded, and when it began on RQ's clock."""

    template: str
    began_s: str


NO_BOOKS = Success("[]", "")


class Desk:
    """What a worker says to the store with each job, made once."""

    def __init__(self, keys: Keys, queue: Queue, books: Books, lease_s: float) -> None:
        self.keys = [queue.key, queue.intermediate_queue_key, keys.leases, keys.delayed, books.worker_key]
        self._books = books
        prefixes = [keys.job(""), RqJob.redis_job_namespace_prefix]
        self._words: list[Word] = [*prefixes, books.of_start(), books.of_idleness(), int(lease_s * 1000)]
        self._successes: dict[int, str] = {}
        self.wishes = 0

    def success(self, taken: Taken, result_ttl_s: int) -> Success:
        """RQ's books of a job that has succeeded and can be read for so long."""
        template = self._successes.get(result_ttl_s)
        if template is None:
            template = self._successes[result_ttl_s] = self._books.of_success(result_ttl_s)
        return Success(template, taken.began.s)

    def words(self, at: Moment, *of_wish: Word) -> list[Word]:
        """ARGV of `desk.lua`; `of_wish` are those that a wish makes."""
        return [*self._words, at.s, at.text, *of_wish]

    def read(self, reply: Sequence[Any], execution: str, began: Moment) -> Taken:
        """What `desk.lua` gives, where it gives a job."""
        job_id, now_ms, pairs, rq_job = reply
        job = job_from(job_id.decode(), dict(zip(pairs[::2], pairs[1::2], strict=True)))
        params, timeout_s = _readable(*rq_job) if rq_job else (None, 0)
        return Taken(job, Claim(job.id, execution), int(now_ms), began, params, timeout_s)


class Wish:
    """A worker's wish for a job, under an execution of its own. `taken` is what has come of it."""

    def __init__(self, desk: Desk, is_open: Callable[[], bool]) -> None:
        self.desk, self._is_open = desk, is_open
        desk.wishes += 1
        self._number = desk.wishes
        self.execution, self._was_asked = secrets.token_hex(16), False
        self._at: Moment | None = None
        self.taken: Taken | None = None

    def words(self, moved_id: str = "") -> list[Word]:
        """The wish as a script takes it, once more where it was asked before."""
        wanted = ["same"] if self._was_asked else []
        if self._is_open():
            wanted.append("job")
            self._was_asked = True
        self._at = Moment.of_now()
        asked_for = " or ".join(wanted) or "nothing"
        return self.desk.words(self._at, self.execution, moved_id, asked_for, self._number)

    def note(self, reply: Sequence[Any] | None) -> None:
        """What a script has answered."""
        assert self._at is not None
        self.taken = None if reply is None else self.desk.read(reply, self.execution, self._at)


def _readable(data: bytes, timeout: bytes | None, origin: bytes | None) -> tuple[dict[str, Any] | None, int]:
    """Parameters and seconds from RQ's part of a job. No parameters where RQ's tools could not read it either."""
    try:
        name, _, _, params = JSONSerializer.loads(decompressed(data))  # type: ignore[no-untyped-call]
        is_readable = isinstance(name, str) and isinstance(params, dict) and (origin or b"").decode()
        return (params if is_readable else None), int(timeout or b"")
    except Exception:
        return None, 0


def decompressed(data: bytes) -> bytes:
    """As RQ reads it, who takes what is not compressed as it is."""
    try:
        return zlib.decompress(data)
    except zlib.error:
        return data
