"""What the views share: what they work with, a job of the caller's, and the answers that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from flask import Response, current_app, g, request, url_for
from werkzeug.datastructures import Headers
from werkzeug.exceptions import PreconditionFailed
from werkzeug.urls import iri_to_uri

from aj import clock
from aj.cancel import Cancel
from aj.errors import JobDeleted, JobGone, JobUnknown
from aj.job import digest, is_job_id
from aj.pace import Outlook
from aj.settings import Settings
from aj.store import Control, Figures, Found
from aj.submit import Submit
from aj.waiting import Waiting

EXTENSION = "aj"
UNCACHED = {"Cache-Control": "no-store"}
CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")
ANY_ID, MOST_ROOTS = "00000000-0000-7000-8000-000000000000", 100
UNKNOWN = "No job has this id, or it ended so long ago that nothing is known of it."


@dataclass(frozen=True, slots=True)
class Api:
    """What the routes of one blueprint work with; `tasks` and `openapi` are JSON that is served as it is.

    `jobs_urls` has the address of its jobs for each root at which a server mounts it.
    """

    settings: Settings
    submit: Submit
    find: Callable[[str], Found]
    waiting: Waiting
    cancel: Cancel
    control: Control
    unready_because: Callable[[], dict[str, str]]
    figures: Figures
    task_names: tuple[str, ...]
    tasks: bytes
    openapi: bytes
    jobs_urls: dict[str, str] = field(default_factory=dict)


def current_api() -> Api:
    api = current_app.extensions[EXTENSION][request.blueprint]
    assert isinstance(api, Api)
    return api


def found_job(job_id: str) -> Found:
    """The job, or the problem that says what is known of its id."""
    if not is_job_id(job_id):
        raise JobUnknown("No job has an id of this form.")
    return known_job(current_api().find(job_id))


def known_job(found: Found) -> Found:
    """What was found, where that is a job of the caller's; else the problem that says what is known of its id."""
    if (found.job.owner if found.job else found.owner) != g.caller:
        raise JobUnknown(UNKNOWN)  # whose job it is, and that it is one, is nobody else's business
    if found.deleted_ms is not None:
        deleted_at = clock.rfc3339(found.deleted_ms)
        raise JobDeleted(f"The job was deleted at {deleted_at}.", deleted_at)
    if found.expired_ms is not None:
        raise JobGone("The job ended and its result is past its life.", clock.rfc3339(found.expired_ms))
    if found.job is None:
        raise JobUnknown(UNKNOWN)
    return found


def document(found: Found, more: Mapping[str, str] = MappingProxyType({})) -> Response:
    """The job as it stands; `more` are further header fields."""
    job, outlook = found.job, found.outlook
    assert job is not None
    if job.status.is_final:
        shown = job.document()
        return json_answer(shown, 200, {"Cache-Control": "no-cache", "ETag": f'"{digest(shown)}"', **more})
    # Weak while the job is active, since the estimates in its document move and the tag does not.
    headers = {"Cache-Control": "no-cache", "ETag": f'W/"{job.etag()}"', **more}
    headers["Retry-After"] = retry_after(outlook, job.result_ttl_s)
    return json_answer(job.document(outlook.position, outlook.eta_s), 200, headers)


def retry_after(outlook: Outlook, result_ttl_s: int | None) -> str:
    """Never so long that the result may be gone when the caller comes back."""
    readable_s, _ = current_api().settings.lives_s(result_ttl_s)
    return str(outlook.retry_after_s(most_late_s=readable_s / 2))


def conditional(answer: Response) -> Response:
    """The answer, or that the caller has it already. Source: RFC 9110 section 13."""
    if not any(name in request.environ for name in CONDITIONS):
        return answer
    etag, is_weak = answer.get_etag()
    assert etag is not None
    matches = not is_weak and request.if_match.contains(etag)
    if request.headers.get("If-Match", "*").strip() != "*" and not matches:
        raise PreconditionFailed("What is there is not what If-Match names.")
    if request.if_none_match.contains_weak(etag):
        answer.status_code = 304
        answer.set_data(b"")
        answer.headers.pop("Content-Length", None)
    return answer


class Answer(Response):
    """A response whose fields are as they are to be sent.

    Werkzeug's own looks once more at each, and takes a Location apart in case it holds what no URI may: 8 % of what a
    submission costs a process. What it does for an answer without a body stays.
    """

    def get_wsgi_headers(self, environ: Any) -> Headers:
        return self.headers if self.content_length else super().get_wsgi_headers(environ)


def uncached(answer: Response) -> Response:
    answer.headers.update(UNCACHED)
    return answer


def json_answer(document: bytes, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Answer(document, status, {"Content-Type": "application/json", **(headers or {})})


def job_url(job_id: str) -> str:
    """The path of a job's status, wherever the routes are mounted. Made by Flask once for each such place."""
    known, root = current_api().jobs_urls, request.script_root
    url = known.get(root)
    if url is None:
        if len(known) >= MOST_ROOTS:
            known.clear()  # another thread may look meanwhile, and has its own in hand
        url = known[root] = iri_to_uri(url_for(".status", job_id=ANY_ID)).removesuffix(ANY_ID)
    return url + job_id
