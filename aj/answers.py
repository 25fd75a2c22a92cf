"""What the views share: what they work with, a job of the caller's, and the answers that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from flask import Request, Response
from werkzeug.datastructures import Headers
from werkzeug.exceptions import PreconditionFailed
from werkzeug.http import unquote_etag

from aj import clock
from aj.cancel import Cancel
from aj.errors import JobDeleted, JobGone, JobUnknown
from aj.job import digest, is_job_id
from aj.pace import Outlook
from aj.settings import Settings
from aj.store import Board, Control, Figures, Found, Sessions
from aj.submit import Submit
from aj.waiting import Waiting

EXTENSION = "aj"
UNCACHED = {"Cache-Control": "no-store"}
CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")
UNKNOWN = "No job has this id, or it ended so long ago that nothing is known of it."


@dataclass(frozen=True, slots=True)
class Api:
    """What the routes of one blueprint work with; `tasks` and `openapi` are JSON that is served as it is.

    `jobs_url` gives the path of its jobs below the root at which a server mounts the app.
    """

    settings: Settings
    submit: Submit
    find: Callable[[str], Found]
    waiting: Waiting
    cancel: Cancel
    control: Control
    unready_because: Callable[[], dict[str, str]]
    figures: Figures
    board: Board
    sessions: Sessions
    task_names: tuple[str, ...]
    tasks: bytes
    openapi: bytes
    jobs_url: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what its routes work with, itself, and its caller; "" where callers are not told apart."""

    api: Api
    request: Request
    caller: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a route answers: status, header fields in their order, body. Who sends it adds the length."""

    status: int
    fields: dict[str, str]
    body: bytes


def found_job(asked: Asked, job_id: str) -> Found:
    """The job, or the problem that says what is known of its id."""
    if not is_job_id(job_id):
        raise JobUnknown("No job has an id of this form.")
    return known_job(asked, asked.api.find(job_id))


def known_job(asked: Asked, found: Found, *, whosever: bool = False) -> Found:
    """What was found, where that is a job of the caller's; else the problem that says what is known of its id."""
    if (found.job.owner if found.job else found.owner) != asked.caller and not whosever:
        raise JobUnknown(UNKNOWN)  # whose job it is, and that it is one, is nobody else's business
    if found.deleted_ms is not None:
        deleted_at = clock.rfc3339(found.deleted_ms)
        raise JobDeleted(f"The job was deleted at {deleted_at}.", deleted_at)
    if found.expired_ms is not None:
        raise JobGone("The job ended and its result is past its life.", clock.rfc3339(found.expired_ms))
    if found.job is None:
        raise JobUnknown(UNKNOWN)
    return found


def document(asked: Asked, found: Found, more: Mapping[str, str] = MappingProxyType({})) -> Reply:
    """The job as it stands; `more` are further header fields."""
    job, outlook = found.job, found.outlook
    assert job is not None
    if job.status.is_final:
        shown = job.document()
        return json_reply(shown, 200, {"Cache-Control": "no-cache", "ETag": f'"{digest(shown)}"', **more})
    # Weak while the job is active, since the estimates in its document move and the tag does not.
    headers = {"Cache-Control": "no-cache", "ETag": f'W/"{job.etag()}"', **more}
    headers["Retry-After"] = retry_after(asked, outlook, job.result_ttl_s)
    return json_reply(job.document(outlook.position, outlook.eta_s), 200, headers)


def retry_after(asked: Asked, outlook: Outlook, result_ttl_s: int | None) -> str:
    """Never so long that the result may be gone when the caller comes back."""
    readable_s, _ = asked.api.settings.lives_s(result_ttl_s)
    return str(outlook.retry_after_s(most_late_s=readable_s / 2))


def conditional(asked: Asked, reply: Reply) -> Reply:
    """The reply, or that the caller has it already. Source: RFC 9110 section 13."""
    request = asked.request
    if not any(name in request.environ for name in CONDITIONS):
        return reply
    etag, is_weak = unquote_etag(reply.fields["ETag"])
    matches = not is_weak and request.if_match.contains(etag)
    if request.headers.get("If-Match", "*").strip() != "*" and not matches:
        raise PreconditionFailed("What is there is not what If-Match names.")
    return Reply(304, reply.fields, b"") if request.if_none_match.contains_weak(etag) else reply


class Answer(Response):
    """A reply as Flask's response, whose fields are as they are to be sent.

    Werkzeug's own looks once more at each, and takes a Location apart in case it holds what no URI may: 8 % of what a
    submission costs a process. What it does for an answer without a body stays.
    """

    default_mimetype = None

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body, reply.status, reply.fields)

    def get_wsgi_headers(self, environ: Any) -> Headers:
        return self.headers if self.content_length else super().get_wsgi_headers(environ)


def uncached(reply: Reply) -> Reply:
    return Reply(reply.status, {**reply.fields, **UNCACHED}, reply.body)


def json_reply(document: bytes, status: int, fields: Mapping[str, str] = MappingProxyType({})) -> Reply:
    return Reply(status, {"Content-Type": "application/json", **fields}, document)


def job_url(asked: Asked, job_id: str) -> str:
    """The path of a job's status, wherever the routes are mounted."""
    return asked.api.jobs_url(asked.request.script_root) + job_id
