"""What hooksink refuses, beyond what every part of `aj` refuses, and how a refusal is rendered.

Every error answer is `application/problem+json`, Flask's own included. Nothing here decides to refuse.

Source: RFC 9457.
"""

from __future__ import annotations

import json

from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from aj.errors import Problem

TYPE_PREFIX = "urn:problem-type:aj:"
RETRY_AFTER_S = 5


class UnreadableSignature(Problem):
    slug, title, status = "signature-missing", "The webhook's signature headers are missing or malformed", 400


class NotAJob(Problem):
    slug, title, status = "not-a-job", "The request body is not a job document", 400


class WrongSignature(Problem):
    slug, title, status = "signature-invalid", "The webhook's signature is wrong or stale", 401


class LogUnavailable(Problem):
    slug, title, status, retryable = "log-unavailable", "The log of receipts cannot be used at the moment", 503, True


_HEADERS = {
    # RFC 9110 section 15.5.2 wants a challenge; what is asked for is the scheme that Standard Webhooks defines.
    401: {"WWW-Authenticate": "Standard-Webhooks"},
    # RFC 9110 section 12.5.3: says that the coding was what made the body unsupported.
    415: {"Accept-Encoding": "identity"},
    503: {"Retry-After": str(RETRY_AFTER_S)},
}


def register(app: Flask) -> None:
    """Makes `app` answer every refusal and every fault as a problem."""
    app.register_error_handler(Problem, _render_ours)
    app.register_error_handler(HTTPException, _render_theirs)


def _render_ours(problem: Problem) -> Response:
    return _respond(TYPE_PREFIX + problem.slug, problem.title, problem.status, problem.detail)


def _render_theirs(error: HTTPException) -> Response:
    status = error.code or 500
    response = _respond("about:blank", error.name, status, error.description or error.name)
    for name, value in error.get_headers():
        if name.lower() == "allow":
            response.headers[name] = value
    return response


def _respond(type_uri: str, title: str, status: int, detail: str) -> Response:
    body = json.dumps({"type": type_uri, "title": title, "status": status, "detail": detail})
    response = Response(body, status, mimetype="application/problem+json")
    response.headers["Cache-Control"] = "no-store"
    response.headers.update(_HEADERS.get(status, {}))
    return response
