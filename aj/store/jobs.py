"""Jobs in the store: one typed method for each atomic step.

Takes and gives values of `aj.job`; HTTP and tasks are unknown here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any

from rq.registry import StartedJobRegistry
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from aj import clock
from aj.errors import AjError, StoreUnavailable
from aj.job import Job, Submission, to_json
from aj.pace import NOTHING_KNOWN, Outlook
from aj.rate import Quota, Rate
from aj.store.client import AWAY, REPLY_TIMEOUT_S, Client
from aj.store.desk import NO_BOOKS, Claim, Success, Wish
from aj.store.enqueue import Enqueue, Kind
from aj.store.found import Found, end_of, found_from, job_from, length_of, outlook_from
from aj.store.keys import Keys
from aj.store.rq_classes import Queue
from aj.store.scripts import Script, Word, flattened

# Less than a request waits for its two tries: by as much as the store may take to answer all that it found when it
# thawed, since a submission whose answer comes too late is told that it was not accepted.
GIVE_UP_MS = int(2 * REPLY_TIMEOUT_S * 1000) - 1000
# An answer that took longer says too little of the store's clock.
QUICK_MS = 100
# Entries of a shared queue that one call looks at: a millisecond of the store's time.
LOOKED_AT = 1000
_WIP = StartedJobRegistry.key_template


class Fenced(AjError):
    """The job is no longer this execution's to change: another one took it, or it has ended."""


class Verdict(StrEnum):
    """What became of a submission."""

    CREATED = "created"
    REPLAYED = "replayed"
    MISMATCH = "mismatch"
    LIMITED = "limited"
    FULL = "full"


class Pulse(IntEnum):
    """What a worker learns from its sign of life."""

    FENCED = 0
    OURS = 1
    ASKED_TO_STOP = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where and for how long a job is kept: the queue, and its limits in seconds.

    `result_ttl_is_own` says that the life of the result is the task's own, so that the job has to remember it.
    `rate` is how quickly its caller may submit.
    """

    queue: str
    timeout_s: int
    result_ttl_s: int
    max_queued: int
    result_ttl_is_own: bool = False
    rate: Rate | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key, as its caller wrote it."""

    text: str
    ttl_s: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a submission. `job_id` is that of the job that stands, if one does; the outlook knows something
    where it was created now."""

    verdict: Verdict
    job_id: str
    quota: Quota | None = None
    outlook: Outlook = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Webhook:
    """A message to be delivered: raw body, its receiver's host, when the first attempt is due."""

    body: bytes
    host: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class End:
    """The end of a job: itself as it stands then, the lives of its result and its tombstone, and the webhook if one is
    owed. `success` are RQ's books of it where a worker's desk keeps them.
    """

    job: Job
    ttls_s: tuple[int, int]
    webhook: Webhook | None
    success: Success = NO_BOOKS


class Jobs:
    """The hash of each job, its tombstone and its idempotency record."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys
        # How far the store's clock is ahead of ours, as its last quick answer showed.
        self._ahead_ms: int | None = None
        self._kinds: dict[Kind, Enqueue] = {}
        # Where in a queue that is shared we look next for jobs of ours.
        self._look_from = 0
        self._submit = Script(client, "count", "workers", "pace", "lists", "rate", "submit")
        self._find = Script(client, "workers", "pace", "find")
        self._start = Script(client, "count", "pace", "start_job", "start")
        self._take = Script(client, "count", "pace", "start_job", "books", "desk", "take")
        self._beat = Script(client, "beat")
        at_an_end = ("count", "pace", "lists", "may_end", "end_job", "start_job", "books", "desk", "finish")
        self._finish = Script(client, *at_an_end)
        self._retry = Script(client, "count", "pace", "may_end", "retry")
        self._progress = Script(client, "progress")
        self._pass_on = Script(client, "pass_on")

    def submit(self, job_id: str, submission: Submission, place: Place, key: Key | None) -> Answer:
        """Accepts a submission in one round trip, or tells why not. Raises: StoreUnavailable."""
        fields: list[Word] = ["owner", submission.owner] if submission.owner else []
        if submission.callback_url is not None:
            fields += ["callback_url", submission.callback_url]
        if submission.metadata is not None:
            fields += ["metadata", to_json(submission.metadata)]
        if submission.traceparent is not None:
            fields += ["traceparent", submission.traceparent]
        if place.result_ttl_is_own:
            fields += ["result_ttl_s", place.result_ttl_s]
        queue_key = Queue.redis_queue_namespace_prefix + place.queue
        keys = [self._keys.job(job_id), queue_key, _WIP.format(place.queue), self._keys.delayed]
        keys += [WORKERS_BY_QUEUE_KEY % place.queue, self._keys.rate(submission.owner)]
        if key is not None:
            keys.append(self._keys.idempotency(submission.owner, key.text))
        args: list[Word] = [job_id, submission.fingerprint, key.ttl_s if key else 0, place.max_queued]
        args += [self._latest_ms(), *((place.rate.count, place.rate.window_s) if place.rate else (0, 0))]
        args += [submission.owner, place.queue, submission.task]
        enqueue = self._enqueue(submission.task, place)
        args += [enqueue.commands, *enqueue(job_id, submission.params), *fields]
        asked_ms = clock.now_ms()
        verdict, standing_id, now_ms, left, *about_pace = self._submit(keys, args)
        answered_ms = clock.now_ms()
        if answered_ms - asked_ms <= QUICK_MS:
            self._ahead_ms = now_ms - answered_ms
        if verdict == b"late":
            # It is late, or our idea of the store's clock is wrong: the next quick answer gives a new one.
            self._ahead_ms = None
            raise StoreUnavailable(AWAY)
        quota = Quota(place.rate, left[0], max(1, math.ceil(left[1] / 1000))) if place.rate else None
        return Answer(Verdict(verdict.decode()), standing_id.decode(), quota, outlook_from(about_pace))

    def _enqueue(self, task: str, place: Place) -> Enqueue:
        """RQ's commands for such a job, made anew for each only in the parts that differ."""
        kind = Kind(place.queue, self._keys.rq_name(task), place.timeout_s, place.result_ttl_s)
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = Enqueue(self._client, kind)
        return known

    def _latest_ms(self) -> int:
        """Until when a submission may be accepted, on the store's clock; 0 where that clock is not known yet.

        A store that hangs reads late what was sent to it. By then the sender has given up, and has said so.
        """
        return 0 if self._ahead_ms is None else clock.now_ms() + self._ahead_ms + GIVE_UP_MS

    def find(self, job_id: str) -> Found:
        """Looks for a job in one round trip. Raises: StoreUnavailable."""
        names = [self._keys.job(job_id), self._keys.tombstone(job_id), self._keys.delayed]
        words = [job_id, Queue.redis_queue_namespace_prefix, WORKERS_BY_QUEUE_KEY % "", _WIP.format("")]
        return found_from(job_id, self._find(names, words))

    def start(self, claim: Claim, lease_s: float, commands: list[tuple[Any, ...]]) -> tuple[Job, int]:
        """Takes a queued job; RQ's `commands` run in the same step. Gives the store's time in ms.

        Raises: Fenced: the job is unknown, not queued any more, or its delay is not over. StoreUnavailable.
        """
        words: list[Any] = [claim.execution, claim.job_id, int(lease_s * 1000), *flattened(commands)]
        reply = self._start([self._keys.job(claim.job_id), self._keys.leases, self._keys.delayed], words)
        if reply is None:
            raise Fenced(f"job {claim.job_id} is not waiting in the queue any more")
        now_ms, *pairs = reply
        return job_from(claim.job_id, dict(zip(pairs[::2], pairs[1::2], strict=True))), int(now_ms)

    def take(self, wish: Wish, moved_id: str) -> None:
        """Takes a job that its worker has moved out of the queue, if it is plainly one to be run. Safe to repeat.

        Raises: StoreUnavailable.
        """
        wish.note(self._take(wish.desk.keys, wish.words(moved_id)))

    def beat(self, claim: Claim, lease_s: float, commands: list[tuple[Any, ...]]) -> Pulse:
        """Renews the lease of a running job, and says what has become of it.

        RQ's `commands` run in the same step. Raises: StoreUnavailable.
        """
        words: list[Any] = [claim.execution, claim.job_id, int(lease_s * 1000), *flattened(commands)]
        return Pulse(self._beat([self._keys.job(claim.job_id), self._keys.leases], words))

    def finish(self, claim: Claim, end: End, commands: list[tuple[Any, ...]], wish: Wish | None = None) -> None:
        """Writes an outcome, its tombstone and its webhook; RQ's `commands` run in the same step. Safe to repeat.

        With a wish its worker takes the next job in the same step, whatever becomes of the outcome.

        Raises: Fenced: the job is not the claim's to end. StoreUnavailable.
        """
        names, words = end_of_job(self._keys, claim, end, commands)
        if wish is not None:
            names += wish.desk.keys
            words += [end.success.template, end.success.began_s, *wish.words()]
        verdict, taken = self._finish(names, words)
        if wish is not None:
            wish.note(taken)
        _refuse_fenced(verdict, claim)

    def retry(self, claim: Claim, delay_s: float, commands: list[tuple[Any, ...]]) -> None:
        """Puts a running job back, to be taken again after `delay_s`; RQ's `commands` run in the same step.

        Safe to repeat. Raises: Fenced: the job is not the claim's. StoreUnavailable.
        """
        names = [self._keys.job(claim.job_id), self._keys.leases, self._keys.delayed]
        _refuse_fenced(self._retry(names, [*claim.words, int(delay_s * 1000), *flattened(commands)]), claim)

    def report_progress(self, claim: Claim, progress: bytes) -> None:
        """Keeps a progress report, if the claim still holds. Raises: StoreUnavailable."""
        self._progress([self._keys.job(claim.job_id)], [claim.execution, progress])

    def is_anothers(self, rq_name: str | None) -> bool:
        """Whether a job of that name is another deployment's, and not ours or plain RQ's."""
        return rq_name is not None and ":" in rq_name and not self._keys.owns(rq_name)

    def pass_on(self, queue: Queue, job_id: str) -> str | None:
        """Puts a job of another deployment back into a queue that both share, and takes one of ours behind it.

        Gives the id of ours; None where none stands in the part of the queue whose turn it is.

        Raises: StoreUnavailable.
        """
        words: list[Word] = [job_id, self._keys.job(""), self._look_from, LOOKED_AT]
        ours, self._look_from = self._pass_on([queue.key, queue.intermediate_queue_key], words)
        return None if ours is None else ours.decode()


def end_of_job(keys: Keys, claim: Claim, end: End, commands: list[tuple[Any, ...]]) -> tuple[list[str], list[Any]]:
    """KEYS and ARGV of `end_job.lua`."""
    ended, webhook = end.job, end.webhook
    host, how, of_rq = webhook.host if webhook else "", end_of(ended), flattened(commands)
    names = [keys.job(ended.id), keys.leases, keys.tombstone(ended.id), keys.delivery(ended.id)]
    names += [keys.hosts, keys.due(host), keys.pending]
    words: list[Any] = [*claim.words, ended.status, ended.outcome, ended.ended_ms, *end.ttls_s]
    words += [webhook.body, host, webhook.due_ms] if webhook else ["", "", 0]
    return names, [*words, keys.news, length_of(ended, how), how, len(of_rq), *of_rq]


def _refuse_fenced(verdict: bytes, claim: Claim) -> None:
    if verdict == b"fenced":
        raise Fenced(f"job {claim.job_id} is not this execution's any more; its outcome is dropped")
