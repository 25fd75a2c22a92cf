"""The dashboard: pages for people, below `/dashboard` of the blueprint, made on the server.

It decides nothing about jobs, and changes nothing in answer to a GET. What it shows is read by typed methods of the
store.
"""

from __future__ import annotations

from flask import Response, request
from werkzeug.exceptions import HTTPException

from aj.dashboard import actions, pages
from aj.dashboard.guard import enter, leave
from aj.dashboard.render import ROOT, error_page
from aj.errors import Problem

__all__ = ["ROOT", "ROUTES", "enter", "error_answer", "is_page", "leave"]

ROUTES = (
    ("GET", "", "", pages.overview),
    ("GET", "/jobs", "_jobs", pages.jobs),
    ("GET", "/jobs/<string:job_id>", "_job", pages.job),
    ("GET", "/jobs/<string:job_id>/result", "_result", pages.result),
    ("POST", "/jobs/<string:job_id>/cancel", "_cancel", actions.cancel),
    ("POST", "/jobs/<string:job_id>/deliveries", "_redeliver", actions.redeliver),
    ("GET", "/deliveries", "_deliveries", pages.deliveries),
    ("GET", "/sign-in", "_sign_in_form", actions.sign_in_form),
    ("POST", "/sign-in", "_sign_in", actions.sign_in),
    ("POST", "/sign-out", "_sign_out", actions.sign_out),
    ("GET", "/static/<string:asset>", "_asset", pages.asset),
)


def is_page() -> bool:
    """Whether this request is for a page."""
    return (request.endpoint or "").rpartition(".")[2].startswith(ROOT)


def error_answer(error: Exception, problem: Response, root: str | None = None) -> Response:
    """An error below the dashboard as a page; `problem` is the same for a program. `root`: see `error_page`."""
    title, detail = "Something broke on this side", "It was logged."
    if isinstance(error, Problem):
        title, detail = error.title, error.detail
    elif isinstance(error, HTTPException):
        title, detail = error.name, error.description or ""
    kept = {name: value for name, value in problem.headers.items() if name.lower() in ("allow", "retry-after")}
    return error_page(problem.status_code, title, detail, kept, root)
