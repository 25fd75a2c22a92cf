"""What the store's replies say of a job, as values: its hash, its tombstone, and what is known of its pace."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aj.job import Callback, CallbackState, ErrorType, Job, Status
from aj.pace import KEPT, NOTHING_KNOWN, Lengths, Outlook, packed
from aj.store.replies import moment

log = logging.getLogger("aj.store")

# Ends that tell nothing of how long another run of the task will take.
UNTYPICAL = frozenset({ErrorType.CANCELLED, ErrorType.LOST, ErrorType.TASK_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Found:
    """What a look for an id brought: the job, its age and outlook, or when it expired or was deleted, or nothing."""

    job: Job | None = None
    age_s: float = 0.0
    outlook: Outlook = NOTHING_KNOWN
    expired_ms: int | None = None
    deleted_ms: int | None = None
    owner: str = ""


def found_from(job_id: str, reply: Sequence[Any]) -> Found:
    """From the reply of `find.lua`."""
    now_ms, tombstone, pairs, *about_pace = reply
    if not pairs:
        return _found_tombstone(tombstone)
    job = job_from(job_id, dict(zip(pairs[::2], pairs[1::2], strict=True)))
    age_s = max(0.0, (now_ms - job.created_ms) / 1000)
    if job.status.is_final:
        return Found(job, age_s)
    ran_s = max(0.0, (now_ms - (job.started_ms or now_ms)) / 1000) if job.status is Status.RUNNING else None
    return Found(job, age_s, outlook_from(about_pace, age_s, ran_s))


def outlook_from(about_pace: Sequence[Any], age_s: float = 0.0, ran_s: float | None = None) -> Outlook:
    """From what `outlook` in `pace.lua` gives, or from nothing where it was not asked."""
    if not about_pace:
        return Outlook(age_s, ran_s)
    ahead, due_in_ms, workers, running, known_at_first, queue, task = about_pace[0]
    return Outlook(
        age_s=age_s,
        ran_s=ran_s,
        ahead=ahead if ahead >= 0 else None,
        due_in_s=due_in_ms / 1000,
        workers=workers,
        running=running,
        queue=Lengths.unpacked(queue),
        task=Lengths.unpacked(task),
        known_at_first=known_at_first if known_at_first >= 0 else KEPT,
    )


def end_of(ended: Job) -> str:
    """How a job ended, in a word: `succeeded`, or the type of its error."""
    return str(json.loads(ended.outcome or b"{}")["type"]) if ended.status is Status.FAILED else str(ended.status)


def length_of(ended: Job, end: str) -> bytes:
    """How long the last attempt of a job that ended so ran, packed; empty where that tells nothing of others."""
    if ended.started_ms is None or ended.ended_ms is None or end in UNTYPICAL:
        return b""
    return packed((ended.ended_ms - ended.started_ms) / 1000)


def _found_tombstone(tombstone: bytes | None) -> Found:
    if tombstone is None:
        return Found()
    text, _, owner = tombstone.decode().partition(" ")
    at_ms = int(text)
    return Found(deleted_ms=-at_ms, owner=owner) if at_ms < 0 else Found(expired_ms=at_ms, owner=owner)


def readable_from(job_id: str, fields: Mapping[bytes, bytes]) -> Job | None:
    """A job from the fields of its hash; None, with a line in the log, where they cannot be read."""
    try:
        return job_from(job_id, fields)
    except (KeyError, ValueError) as error:
        log.warning("the record of job %s in the store cannot be read: %r", job_id, error)
        return None


def job_from(job_id: str, fields: Mapping[bytes, bytes]) -> Job:
    """A job from the fields of its hash. Raises: KeyError, ValueError: one is missing or cannot be read."""

    def number(name: bytes) -> int | None:
        return int(fields[name]) if name in fields else None

    def time_ms(name: bytes) -> int | None:
        return _time_ms(fields[name]) if name in fields else None

    url, traceparent = fields.get(b"callback_url"), fields.get(b"traceparent")
    return Job(
        id=job_id,
        status=Status(fields[b"status"].decode()),
        task=fields[b"task"].decode(),
        created_ms=_time_ms(fields[b"created_ms"]),
        started_ms=time_ms(b"started_ms"),
        ended_ms=time_ms(b"ended_ms"),
        expires_ms=time_ms(b"expires_ms"),
        attempt=number(b"attempt") or 0,
        metadata=fields.get(b"metadata"),
        owner=fields.get(b"owner", b"").decode(),
        result_ttl_s=number(b"result_ttl_s"),
        traceparent=traceparent.decode() if traceparent is not None else None,
        progress=fields.get(b"progress"),
        outcome=fields.get(b"outcome"),
        callback_url=url.decode() if url is not None else None,
        callback=None
        if url is None
        else Callback(
            CallbackState(fields.get(b"callback_state", b"pending").decode()),
            number(b"callback_attempts") or 0,
            number(b"callback_last_status"),
            time_ms(b"callback_next_ms"),
        ),
    )


def _time_ms(written: bytes) -> int:
    """Raises: ValueError: it is no time that can be written again."""
    at_ms = moment(written)
    if at_ms is None:
        raise ValueError(f"{written!r} is no time")
    return at_ms
