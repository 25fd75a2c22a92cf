"""The OpenAPI document: the routes, what each takes and answers, and the schemas of the tasks of this deployment.

Source: OpenAPI 3.1.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from aj.errors import KeyReused, Problem, QueueFull, RateExceeded, Unauthorized
from aj.headers import TRACE_HEADER
from aj.openapi.fields import headers, parameter
from aj.openapi.operations import OPERATIONS, Answer, Operation
from aj.openapi.schemas import JOB_ID, SENT, TEXT, problem_schemas, ref
from aj.openapi.tasks import submission_schemas
from aj.problems import MEDIA_TYPE
from aj.registry import Registry
from aj.signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER
from aj.version import __version__

# Method, path with its variable parts, name of the endpoint, function.
Route = tuple[str, str, str, Callable[..., Any]]

ABOUT = """Work that takes longer than a request: submit a job, ask how it stands, or be called when it has ended.

Every error is a problem document (RFC 9457). HEAD equals GET without the body. OPTIONS, and 405 for a method that a
path does not have, carry `Allow`. `Retry-After` says when to ask again.
Integers are strict: `5.0` and `"5"` are none."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Whether callers are told apart, and the endpoints that are open all the same."""

    is_on: bool
    open_to_all: Collection[str]

    def holds(self, endpoint: str) -> bool:
        return self.is_on and endpoint not in self.open_to_all


def make_document(routes: Sequence[Route], registry: Registry, guard: Guard) -> dict[str, Any]:
    """The document, but for `servers`, which only a request can tell.

    Raises: KeyError: a route is not in the table of operations.
    """
    submission, of_tasks = submission_schemas(registry)
    paths: dict[str, dict[str, Any]] = {}
    for method, rule, endpoint, _ in routes:
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule)
        operation = _operation(endpoint, path, guard.holds(endpoint), routes)
        if OPERATIONS[endpoint].has_body:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": submission}}}
        paths.setdefault(path, {})[method.lower()] = operation
    components: dict[str, Any] = {"schemas": {**SENT, **problem_schemas(), **of_tasks}}
    if guard.is_on:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    webhooks = {"job.succeeded": _webhook("JobSucceeded"), "job.failed": _webhook("JobFailed")}
    info = {"title": "aj", "version": __version__, "description": ABOUT}
    return {"openapi": "3.1.1", "info": info, "paths": paths, "webhooks": webhooks, "components": components}


def _operation(endpoint: str, path: str, is_guarded: bool, routes: Sequence[Route]) -> dict[str, Any]:
    told = OPERATIONS[endpoint]
    kinds: list[type[Problem]] = [*told.problems, *([Unauthorized] if is_guarded else [])]
    answers = [*told.answers, *_conditional_answers(told)]
    taken = [*told.takes, *(["If-None-Match", "If-Match"] if told.is_conditional or told.has_precondition else [])]
    operation: dict[str, Any] = {
        "operationId": endpoint,
        "tags": ["jobs" if path.startswith("/jobs") else "service"],
        "summary": told.summary,
        "parameters": [*_path_parameters(path), *(parameter(name) for name in taken)],
        "responses": {str(each.status): _answer(each, routes) for each in answers},
    }
    for status in sorted({each.status for each in kinds}):
        operation["responses"][str(status)] = _refusal([each for each in kinds if each.status == status])
    operation["responses"].update({str(status): _plain(status) for status in _plain_statuses(told)})
    if is_guarded:
        operation["security"] = [{"key": []}]
    return operation


def _conditional_answers(told: Operation) -> list[Answer]:
    if not told.is_conditional:
        return []
    return [replace(told.answers[0], status=304, description="What If-None-Match names still holds.", schema=None)]


def _plain_statuses(told: Operation) -> list[int]:
    """Statuses of errors that have no type of their own."""
    return [*([404] if told.needs_extra else []), *([412] if told.is_conditional or told.has_precondition else []), 500]


def _path_parameters(path: str) -> list[dict[str, Any]]:
    schemas = {"job_id": JOB_ID, "asset": TEXT}
    return [
        {"name": name, "in": "path", "required": True, "schema": schemas[name]} for name in re.findall(r"{(\w+)}", path)
    ]


def _answer(answer: Answer, routes: Sequence[Route]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description, "headers": headers(answer.headers)}
    if answer.schema is not None:
        described["content"] = {each: {"schema": answer.schema} for each in answer.media_types}
    if answer.leads_to_job:
        described["links"] = {
            endpoint: {"operationId": endpoint, "parameters": {"job_id": "$response.body#/job_id"}}
            for _, path, endpoint, _ in routes
            if "job_id>" in path
        }
    return described


def _refusal(kinds: list[type[Problem]]) -> dict[str, Any]:
    """One status, and the problems that come with it."""
    names = ["Cache-Control"]
    names += ["Retry-After"] if kinds[0].retryable else []
    names += ["Accept"] if kinds[0].status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE else []
    names += ["WWW-Authenticate"] if kinds[0].status == HTTPStatus.UNAUTHORIZED else []
    names += ["RateLimit-Policy", "RateLimit"] if RateExceeded in kinds else []
    names += ["RateLimit-Policy?", "RateLimit?"] if {KeyReused, QueueFull} & set(kinds) else []
    refs = [ref(each.__name__) for each in kinds]
    return {
        "description": ". ".join(each.title for each in kinds) + ".",
        "headers": headers(tuple(names)),
        "content": {MEDIA_TYPE: {"schema": refs[0] if len(refs) == 1 else {"oneOf": refs}}},
    }


def _plain(status: int) -> dict[str, Any]:
    return {
        "description": f"{HTTPStatus(status).phrase}.",
        "headers": headers(("Cache-Control",)),
        "content": {MEDIA_TYPE: {"schema": ref("HttpProblem")}},
    }


def _webhook(schema: str) -> dict[str, Any]:
    """What is sent to `callback_url`. Source: Standard Webhooks 1.0."""
    told = (
        (ID_HEADER, True, "One per job, the same on every attempt."),
        (TIMESTAMP_HEADER, True, "Seconds since the epoch at the attempt."),
        (SIGNATURE_HEADER, False, "`v1,` and a signature, one per secret; absent where no secrets are set."),
        (TRACE_HEADER, False, "That of the submission, as it came; absent where it had none (W3C Trace Context)."),
    )
    return {
        "post": {
            "operationId": schema,
            "tags": ["webhooks"],
            "summary": "The job has ended",
            "parameters": [
                {"name": name, "in": "header", "required": required, "schema": TEXT, "description": description}
                for name, required, description in told
            ],
            "requestBody": {"required": True, "content": {"application/json": {"schema": ref(schema)}}},
            "responses": {
                "2XX": {"description": "Delivered."},
                "410": {"description": "Gone: no further attempt."},
                "default": {"description": "Tried again on the schedule; `Retry-After` on 429 and 503 delays it."},
            },
        }
    }
