"""Errors as RFC 9457 problem documents. Every error that leaves the blueprint goes through here."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from flask import Request, Response
from werkzeug.exceptions import HTTPException

from aj.errors import FieldError, Invalid, JobDeleted, JobGone, NotReady, Problem, RateExceeded
from aj.job import is_job_id, to_json
from aj.logs import of_job

log = logging.getLogger("aj.problems")

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:problem-type:aj:"
RETRY_AFTER_S = 2
MOST_ERRORS = 50


def failure(error: Exception, request: Request, job_id: str) -> tuple[str, Response]:
    """Why a request failed, in a word for the figures, and its answer. `job_id` is what it names, if anything.

    What nobody foresaw is logged here.
    """
    if isinstance(error, Problem):
        return error.slug, problem_response(error)
    if isinstance(error, HTTPException):
        return "http-error", http_exception_response(error)
    fields = of_job(job_id) if is_job_id(job_id) else {}
    log.error("%s %s broke", request.method, request.path, exc_info=error, extra=fields)
    return "internal-error", internal_error_response()


def problem_response(problem: Problem) -> Response:
    """One of our own errors as an answer, with Retry-After where trying again may help."""
    extra: dict[str, Any] = {}
    if isinstance(problem, Invalid) and problem.errors:
        extra["errors"] = [_field(each) for each in problem.errors[:MOST_ERRORS]]
    if isinstance(problem, JobGone | JobDeleted):
        extra["expired_at"] = problem.expired_at
    if isinstance(problem, NotReady):
        extra["checks"] = problem.checks
    answer = _document(TYPE_PREFIX + problem.slug, problem.title, problem.status, problem.detail, extra)
    if problem.retryable:
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    if isinstance(problem, RateExceeded):
        answer.headers["Retry-After"] = str(problem.retry_after_s)
    answer.headers.update(problem.fields)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="aj"'
    if problem.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        answer.headers["Accept"] = "application/json"
        answer.headers["Accept-Encoding"] = "identity"
    return answer


def http_exception_response(error: HTTPException) -> Response:
    """An error of Flask or Werkzeug, such as 404 or 405, as an answer that keeps its headers (Allow)."""
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    answer = _document("about:blank", error.name, status, error.description or error.name, {})
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            answer.headers[name] = value
    return answer


def internal_error_response() -> Response:
    """The answer to an error that nobody foresaw; what it was stands in the log and nowhere else."""
    return _document("about:blank", "Internal Server Error", 500, "Something broke on this side; it was logged.", {})


def _document(kind: str, title: str, status: int, detail: str, extra: dict[str, Any]) -> Response:
    printable = detail.encode("utf-8", "replace").decode("utf-8")
    members = {"type": kind, "title": title, "status": int(status), "detail": printable, **extra}
    answer = Response(to_json(members), status=status, content_type=MEDIA_TYPE)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _field(error: FieldError) -> dict[str, str]:
    return {"pointer": error.pointer, "detail": error.detail.encode("utf-8", "replace").decode("utf-8")}
