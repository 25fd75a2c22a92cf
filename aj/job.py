"""A job as its caller sees it: the four words, the ways to end, the document.

Values and pure functions only: nothing here reads a clock, a store or a request.
Stored JSON is passed through as bytes, so that a reader of a large result does not parse it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from aj.clock import rfc3339


class Status(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return not NEXT[self]


# The legal moves. The store's scripts refuse every other one.
NEXT: dict[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.RUNNING}),
    Status.RUNNING: frozenset({Status.QUEUED, Status.SUCCEEDED, Status.FAILED}),  # queued: a task with retries
    Status.SUCCEEDED: frozenset(),
    Status.FAILED: frozenset(),
}


class ErrorType(StrEnum):
    """Why a job failed: the values of `error.type`."""

    TASK_FAILED = "task-failed"
    TIMED_OUT = "timed-out"
    LOST = "lost"
    CANCELLED = "cancelled"
    RESULT_INVALID = "result-invalid"
    RESULT_TOO_LARGE = "result-too-large"
    TASK_UNAVAILABLE = "task-unavailable"


_TITLES = {
    ErrorType.TASK_FAILED: "The task raised an exception",
    ErrorType.TIMED_OUT: "The task took longer than it may",
    ErrorType.LOST: "The worker died while the task ran",
    ErrorType.CANCELLED: "The job was cancelled",
    ErrorType.RESULT_INVALID: "The task's return value is not JSON",
    ErrorType.RESULT_TOO_LARGE: "The task's return value is too large",
    ErrorType.TASK_UNAVAILABLE: "The worker cannot run this task",
}


class CallbackState(StrEnum):
    """Where a job's webhook stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    GONE = "gone"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: `body` is the JSON of its result, or of its error, whose type `kind` is."""

    status: Status
    body: bytes
    kind: ErrorType | None = None

    @classmethod
    def succeeded(cls, result: bytes) -> Outcome:
        return cls(Status.SUCCEEDED, result)

    @classmethod
    def failed(cls, kind: ErrorType, detail: str) -> Outcome:
        """`detail` is shown to the caller: it holds no traceback, no argument and no secret."""
        error = {"type": kind, "title": _TITLES[kind], "detail": detail}
        return cls(Status.FAILED, to_json(error), kind)

    @classmethod
    def timed_out(cls, timeout_s: float) -> Outcome:
        return cls.failed(ErrorType.TIMED_OUT, f"The task may take {timeout_s:g} s and did not end in that time.")

    @classmethod
    def lost(cls) -> Outcome:
        return cls.failed(ErrorType.LOST, "The process that ran the task died before the task ended.")

    @classmethod
    def cancelled(cls) -> Outcome:
        return cls.failed(ErrorType.CANCELLED, "The job was cancelled before its task had ended.")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Submission:
    """What a caller asked for, as validated. `params` and `metadata` hold JSON values.

    `owner` is the caller's name, empty where callers are not told apart. `traceparent` is the caller's trace (W3C
    Trace Context), which is no part of the payload.
    """

    task: str
    params: Mapping[str, Any]
    callback_url: str | None = None
    metadata: Mapping[str, Any] | None = None
    owner: str = ""
    traceparent: str | None = None

    @property
    def fingerprint(self) -> str:
        """One digest per payload, whatever the order of members, the white space or the defaults left out."""
        payload = [self.task, self.params, self.callback_url, self.metadata]
        return hashlib.sha256(_CANONICAL.encode(payload).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it stands in the store. JSON members are bytes; times are ms since the epoch.

    `result_ttl_s` is how long it can be read from its end on, None where its task says nothing of it.
    """

    id: str
    status: Status
    task: str
    created_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None
    expires_ms: int | None = None
    attempt: int = 0
    metadata: bytes | None = None
    progress: bytes | None = None
    outcome: bytes | None = None
    callback_url: str | None = None
    callback: Callback | None = None
    owner: str = ""
    result_ttl_s: int | None = None
    traceparent: str | None = None

    def ended(self, outcome: Outcome, ended_ms: int, result_ttl_s: int) -> Job:
        """This job as it stands after its end."""
        expires_ms = ended_ms + result_ttl_s * 1000
        return replace(self, status=outcome.status, outcome=outcome.body, ended_ms=ended_ms, expires_ms=expires_ms)

    def document(self, position: int | None = None, eta_s: int | None = None) -> bytes:
        """The JSON document of this job, with what is estimated of it at the moment.

        `result` is there exactly when it succeeded, `error` exactly when it failed.
        """
        members = self.members()
        members += [("position", b"%d" % position)] if position is not None else []
        members += [("eta_s", b"%d" % eta_s)] if eta_s is not None else []
        return join_members(members)

    def etag(self) -> str:
        """A digest that moves when the document does, its estimates left out: they move all the time."""
        return digest(self.document())

    def members(self) -> list[tuple[str, bytes]]:
        """The document's members in their order, each with its JSON; estimates are none of them."""
        members = [("job_id", _quoted(self.id)), ("status", _quoted(self.status)), ("task", _quoted(self.task))]
        members += [("metadata", self.metadata)] if self.metadata is not None else []
        for name, at_ms in (
            ("created_at", self.created_ms),
            ("started_at", self.started_ms),
            ("ended_at", self.ended_ms),
            ("expires_at", self.expires_ms),
        ):
            members += [(name, _quoted(rfc3339(at_ms)))] if at_ms is not None else []
        members += [("attempt", b"%d" % self.attempt)] if self.attempt else []
        members += [("progress", self.progress)] if self.progress is not None else []
        if self.outcome is not None:
            members.append(("result" if self.status is Status.SUCCEEDED else "error", self.outcome))
        members += [("callback", self.callback.json())] if self.callback is not None else []
        return members


@dataclass(frozen=True, slots=True)
class Callback:
    """The state of a job's webhook. `last_status` is the receiver's last HTTP status."""

    state: CallbackState
    attempts: int = 0
    last_status: int | None = None
    next_attempt_ms: int | None = None

    def json(self) -> bytes:
        shown: dict[str, Any] = {"state": self.state, "attempts": self.attempts}
        if self.last_status is not None:
            shown["last_status"] = self.last_status
        if self.next_attempt_ms is not None:
            shown["next_attempt_at"] = rfc3339(self.next_attempt_ms)
        return to_json(shown)


def to_json(value: Any) -> bytes:
    """`value` as JSON in UTF-8.

    Raises: ValueError (NaN, Infinity, a circle, a lone surrogate, an integer beyond Python's digit limit),
    TypeError (no JSON type), RecursionError (nesting).
    """
    return _ENCODER.encode(value).encode("utf-8")


_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


def quoted(text: str) -> bytes:
    """`text` as a JSON string."""
    return to_json(str(text))


def _quoted(word: str) -> bytes:
    """An id, a word of ours, a time or the name of a task as a JSON string: none of their characters is escaped."""
    return b'"%s"' % word.encode("ascii")


def digest(document: bytes) -> str:
    """What an entity tag says of a document."""
    return hashlib.blake2b(document, digest_size=16).hexdigest()


def join_members(members: list[tuple[str, bytes]]) -> bytes:
    """A JSON object of members whose values are JSON already."""
    return b"{" + b", ".join(b'"%s": %s' % (name.encode("ascii"), value) for name, value in members) + b"}"


JOB_ID_PATTERN = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_JOB_ID = re.compile(JOB_ID_PATTERN)


def new_job_id(at_ms: int) -> str:
    """A fresh UUIDv7: ordered by `at_ms`, with 74 random bits that nobody can guess.

    Source: RFC 9562 section 5.7.
    """
    time, chance = f"{at_ms & (2**48 - 1):012x}", os.urandom(10).hex()
    variant = "89ab"[int(chance[3], 16) % 4]  # two bits that are fixed, and two by chance
    return f"{time[:8]}-{time[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[7:19]}"


def is_job_id(text: str) -> bool:
    """Whether `text` can be an id that we gave. Nothing else ever becomes part of a key."""
    return _JOB_ID.fullmatch(text) is not None
