"""JSON Schemas of what the API sends: jobs, webhooks, lists and problems.

They are open to members that later versions add; the tests close them, so that none goes without a description.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aj.errors import Invalid, JobDeleted, JobGone, NotReady, Problem
from aj.job import JOB_ID_PATTERN, CallbackState, ErrorType, Status
from aj.problems import TYPE_PREFIX
from aj.progress import LONGEST_MESSAGE

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TIME: Schema = {"type": "string", "format": "date-time", "description": "RFC 3339, UTC, with milliseconds."}
JOB_ID: Schema = {"type": "string", "pattern": f"^{JOB_ID_PATTERN}$"}
HTTP_STATUS: Schema = {"type": "integer", "minimum": 100, "maximum": 599}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def members(required: Schema, optional: Schema | None = None) -> Schema:
    """An object with these members."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_ERROR = members({"type": {"enum": list(ErrorType)}, "title": TEXT, "detail": TEXT})
_CALLBACK = members(
    {"state": {"enum": list(CallbackState)}, "attempts": {"type": "integer", "minimum": 0}},
    {"last_status": HTTP_STATUS, "next_attempt_at": TIME},
)
_PROGRESS = members(
    {"fraction": {"type": "number", "minimum": 0, "maximum": 1}},
    {"message": {"type": "string", "maxLength": LONGEST_MESSAGE}},
)
_ALWAYS = {"job_id": JOB_ID, "status": {"enum": list(Status)}, "task": TEXT, "created_at": TIME}
_SOMETIMES = {
    "started_at": TIME,
    "ended_at": TIME,
    "expires_at": {**TIME, "description": "When the result is past its life and the job answers 410."},
    "attempt": {"type": "integer", "minimum": 1},
}
_DETAILS = {
    "metadata": {"type": "object", "description": "What the submission gave."},
    "progress": _PROGRESS,
    "callback": _CALLBACK,
}
_EXPECTED = {
    "position": {"type": "integer", "minimum": 1, "description": "The place in the queue, 1 for the next."},
    "eta_s": {"type": "integer", "minimum": 1, "description": "Seconds until the expected end: an estimate."},
}
_OUTCOME = {"result": {"description": "The task's return value: any JSON."}, "error": _ERROR}


def _having(statuses: list[Status], required: tuple[str, ...], forbidden: tuple[str, ...]) -> Schema:
    """What holds of a job in one of `statuses`."""
    return {
        "properties": {"status": {"enum": statuses}},
        "required": list(required),
        "not": {"anyOf": [{"required": [name]} for name in forbidden]},
    }


def _event(status: Status) -> Schema:
    """A webhook's body. Only a result can be too large for it."""
    outcome = "error" if status is Status.FAILED else "result"
    schema = members(
        {"type": {"const": f"job.{status}"}, "timestamp": TIME, **_ALWAYS, "ended_at": TIME, "expires_at": TIME},
        {**_SOMETIMES, **_DETAILS, outcome: _OUTCOME[outcome]},
    )
    schema["properties"]["status"] = {"const": status}
    if status is Status.FAILED:
        schema["required"].append("error")
    else:
        schema["properties"]["result_omitted"] = {"const": True, "description": "The result is over 16 KiB."}
        schema["oneOf"] = [{"required": ["result"]}, {"required": ["result_omitted"]}]
    return schema


SENT: dict[str, Schema] = {
    "Accepted": members({"job_id": JOB_ID, "status": {"const": Status.QUEUED}}),
    "Job": {
        **members(_ALWAYS, {**_SOMETIMES, **_EXPECTED, **_DETAILS, **_OUTCOME}),
        "oneOf": [
            _having([Status.QUEUED, Status.RUNNING], (), ("result", "error", "ended_at", "expires_at")),
            _having([Status.SUCCEEDED], ("result", "ended_at", "expires_at"), ("error", *_EXPECTED)),
            _having([Status.FAILED], ("error", "ended_at", "expires_at"), ("result", *_EXPECTED)),
        ],
    },
    "ListedJob": members(_ALWAYS, _SOMETIMES),
    "JobList": members({"jobs": array(ref("ListedJob"))}),
    "Attempts": members({"attempts": array(ref("Attempt"))}),
    "Attempt": {
        **members(
            {"at": TIME, "duration_s": {"type": "number", "minimum": 0}},
            {
                "status": {**HTTP_STATUS, "description": "The receiver's answer."},
                "error": {**TEXT, "description": "In a word, why there was no answer."},
            },
        ),
        "oneOf": [{"required": ["status"]}, {"required": ["error"]}],
    },
    "Redelivery": members({"job_id": JOB_ID, "callback": members({"state": {"const": CallbackState.PENDING}})}),
    "Tasks": members({"tasks": array(ref("Task"))}),
    "Task": members(
        {
            "name": TEXT,
            "default": {"type": "boolean", "description": "Whether a submission without `task` means this one."},
            "queue": TEXT,
            "timeout_s": {"type": "integer", "minimum": 1},
            "result_ttl_s": {"type": "integer", "minimum": 1},
            "retries": {"type": "integer", "minimum": 0},
            "parameters": {"type": "object", "description": "JSON Schema (2020-12) of the parameters."},
        },
        {
            "description": {**TEXT, "description": "The function's docstring."},
            "retry_delays_s": array({"type": "number", "minimum": 0}),
        },
    ),
    "Health": members({"status": {"const": "ok"}}),
    "Readiness": members({"status": {"const": "ready"}}),
    "JobSucceeded": _event(Status.SUCCEEDED),
    "JobFailed": _event(Status.FAILED),
}

_EXTRA: dict[type[Problem], Schema] = {
    Invalid: {"errors": array(ref("FieldError"))},
    JobGone: {"expired_at": TIME},
    JobDeleted: {"expired_at": TIME},
    NotReady: {"checks": {"type": "object", "additionalProperties": TEXT, "description": "What is wrong, by name."}},
}


def problem_schemas() -> dict[str, Schema]:
    """One schema for each problem of ours, by the name of its class, and one for plain HTTP errors."""
    pointer = {**TEXT, "description": "A JSON Pointer as a URI fragment (RFC 6901 section 6)."}
    schemas = {
        "HttpProblem": _problem({"type": {"const": "about:blank"}, "title": TEXT, "status": HTTP_STATUS}, {}),
        "FieldError": members({"pointer": pointer, "detail": TEXT}),
    }
    for kind in all_problems():
        fixed = {"type": TYPE_PREFIX + kind.slug, "title": kind.title, "status": kind.status}
        extra = _EXTRA.get(kind, {})
        schemas[kind.__name__] = _problem({name: {"const": value} for name, value in fixed.items()}, extra)
        if kind is not Invalid:
            schemas[kind.__name__]["required"] += extra
    return schemas


def all_problems() -> Iterator[type[Problem]]:
    """Each problem of `aj.errors`; those of the receiver are not ours to answer."""
    return (each for each in Problem.__subclasses__() if each.__module__ == Problem.__module__)


def _problem(fixed: Schema, extra: Schema) -> Schema:
    return {**members({**fixed, "detail": TEXT}, extra), "description": "RFC 9457"}
