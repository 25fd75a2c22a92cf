"""What each route takes and answers, as one table. A route that is not in it has no document, and the app no start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aj.errors import (
    AlreadyEnded,
    BodyTooLarge,
    Invalid,
    JobDeleted,
    JobGone,
    JobUnknown,
    KeyReused,
    Malformed,
    MalformedKey,
    MalformedQuery,
    NotPossible,
    NotReady,
    Problem,
    QueueFull,
    RateExceeded,
    StillActive,
    StoreUnavailable,
    UnsupportedMedia,
)
from aj.headers import TRACE_HEADER
from aj.openapi.schemas import TEXT, ref

_OF_A_JOB = (JobUnknown, JobGone, JobDeleted, StoreUnavailable)


@dataclass(frozen=True, slots=True)
class Answer:
    """One way for a request to go well. A name in `headers` that ends in `?` is of one that may be missing."""

    status: int
    description: str
    schema: dict[str, Any] | None
    headers: tuple[str, ...] = ("Cache-Control",)
    media_types: tuple[str, ...] = ("application/json",)
    leads_to_job: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """What one route does. `takes` names request headers and query parameters in `aj.openapi.fields`.

    One that `is_conditional` also answers 304 and 412, and takes the headers that ask for it; one that
    `has_precondition` only 412, since it changes something.
    One that `needs_extra` is 404 where that is not installed.
    """

    summary: str
    answers: tuple[Answer, ...]
    problems: tuple[type[Problem], ...] = ()
    takes: tuple[str, ...] = ()
    is_conditional: bool = False
    has_precondition: bool = False
    has_body: bool = False
    needs_extra: bool = False


_ETAGGED = ("Cache-Control", "ETag")
_HONOURED = ("Preference-Applied?", "Vary?")
_LIMITED = ("RateLimit-Policy?", "RateLimit?")

OPERATIONS: dict[str, Operation] = {
    "submit": Operation(
        "Submit a job",
        (
            Answer(
                202,
                "The job is accepted and waits, now or since an earlier request with the same key.",
                ref("Accepted"),
                ("Cache-Control", "Location", "Retry-After", "Idempotent-Replayed?", *_HONOURED, *_LIMITED),
                leads_to_job=True,
            ),
            Answer(
                200,
                "The job ended within the time that `Prefer: wait` gave.",
                ref("Job"),
                (*_ETAGGED, "Location", "Idempotent-Replayed?", *_HONOURED, *_LIMITED),
                leads_to_job=True,
            ),
        ),
        (
            Malformed,
            MalformedKey,
            BodyTooLarge,
            UnsupportedMedia,
            Invalid,
            KeyReused,
            RateExceeded,
            QueueFull,
            StoreUnavailable,
        ),
        ("Idempotency-Key", "Prefer", TRACE_HEADER),
        has_body=True,
    ),
    "list": Operation(
        "List jobs, newest first, without their outcomes",
        (Answer(200, "A page of jobs.", ref("JobList"), ("Cache-Control", "Link?")),),
        (MalformedQuery, StoreUnavailable),
        ("status", "task", "limit", "cursor"),
    ),
    "status": Operation(
        "Show a job",
        (Answer(200, "The job as it stands.", ref("Job"), (*_ETAGGED, "Retry-After?", *_HONOURED)),),
        _OF_A_JOB,
        ("Prefer",),
        is_conditional=True,
    ),
    "delete": Operation(
        "Forget an ended job",
        (Answer(204, "The job is forgotten, now or since an earlier request.", None),),
        (StillActive, *_OF_A_JOB),
        has_precondition=True,
    ),
    "result": Operation(
        "Show the bare result of a job that succeeded",
        (Answer(200, "The task's return value.", {}, _ETAGGED),),
        (StillActive, NotPossible, *_OF_A_JOB),
        is_conditional=True,
    ),
    "cancel": Operation(
        "Cancel a job",
        (
            Answer(
                200,
                "The job, ended as cancelled; still running only where its worker is slow to die.",
                ref("Job"),
                (*_ETAGGED, "Retry-After?"),
            ),
        ),
        (AlreadyEnded, *_OF_A_JOB),
        has_precondition=True,
    ),
    "deliveries": Operation(
        "Show the attempts to bring a job's webhook",
        (Answer(200, "The attempts, oldest first.", ref("Attempts")),),
        _OF_A_JOB,
    ),
    "redeliver": Operation(
        "Send a job's webhook again",
        (Answer(202, "It is on its way.", ref("Redelivery"), ("Cache-Control", "Location")),),
        (NotPossible, *_OF_A_JOB),
    ),
    "health": Operation(
        "Say whether the process answers",
        (Answer(200, "It does.", ref("Health")),),
    ),
    "ready": Operation(
        "Say whether jobs can be accepted and run",
        (Answer(200, "They can.", ref("Readiness")),),
        (NotReady,),
    ),
    "metrics": Operation(
        "Tell the figures of the deployment",
        (Answer(200, "Figures for Prometheus.", TEXT, media_types=("text/plain", "application/openmetrics-text")),),
        needs_extra=True,
    ),
    "tasks": Operation(
        "List the tasks that can be submitted",
        (Answer(200, "The tasks, with the JSON Schema of their parameters.", ref("Tasks"), _ETAGGED),),
        is_conditional=True,
    ),
    "openapi": Operation(
        "Show this document",
        (Answer(200, "OpenAPI 3.1.", {"type": "object"}, _ETAGGED),),
        is_conditional=True,
    ),
    "docs": Operation(
        "Show this document to a person",
        (
            Answer(
                200,
                "A page that works without any other host.",
                TEXT,
                (*_ETAGGED, "Content-Security-Policy"),
                ("text/html",),
            ),
        ),
        is_conditional=True,
        needs_extra=True,
    ),
    "docs_asset": Operation(
        "Serve a part of that page",
        (Answer(200, "A script, a style sheet or a picture.", TEXT, _ETAGGED, ("text/css", "text/javascript")),),
        is_conditional=True,
        needs_extra=True,
    ),
}
