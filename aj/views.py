"""The routes' functions: a request becomes values, one verb is called, its answer becomes a response.

They find what they work with in `app.extensions["aj"]`, where the blueprint put it. Nothing is decided here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from flask import Response, current_app, g, request, url_for
from werkzeug.exceptions import PreconditionFailed

from aj import clock
from aj.access import caller_of
from aj.body import parse_object, read_body
from aj.cancel import Cancel
from aj.errors import (
    JobDeleted,
    JobGone,
    JobUnknown,
    MalformedQuery,
    NotPossible,
    NotReady,
    StillActive,
    StoreUnavailable,
    UnsupportedMedia,
)
from aj.headers import TRACE_HEADER, idempotency_key, preferred_wait_s, traceparent
from aj.job import Job, Status, is_job_id, join_members, to_json
from aj.pace import Outlook
from aj.settings import Settings
from aj.store import Control, Figures, Found, Wanted
from aj.submit import Submit
from aj.waiting import LONGEST_WAIT_S, Waiting

EXTENSION = "aj"
PAGE_DEFAULT, PAGE_MOST = 50, 200
UNKNOWN = "No job has this id, or it ended so long ago that nothing is known of it."
OPEN_TO_ALL = frozenset({"health", "ready", "metrics", "tasks", "openapi", "docs", "docs_asset"})


@dataclass(frozen=True, slots=True)
class Api:
    """What the routes of one blueprint work with; `tasks` and `openapi` are JSON that is served as it is."""

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


def recognise_caller() -> None:
    """Notes in `g.caller` who is calling. Raises: Unauthorized: keys are configured, and this is none of them."""
    endpoint = (request.endpoint or "").rpartition(".")[2]
    keys = () if endpoint in OPEN_TO_ALL else current_api().settings.api_keys
    g.caller = caller_of(request.headers.get("Authorization"), keys)


def submit_job() -> Response:
    api = current_api()
    if request.mimetype != "application/json" and request.headers.get("Content-Type", "").strip():
        raise UnsupportedMedia(f"The Content-Type is {request.content_type!r}; send application/json.")
    if request.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        raise UnsupportedMedia("The body has a Content-Encoding; send it as it is.")
    members = parse_object(read_body(_unread_environ(), api.settings.max_body_bytes))
    key, trace = request.headers.get("Idempotency-Key"), request.headers.get(TRACE_HEADER)
    accepted = api.submit(members, idempotency_key(key), g.caller, traceparent(trace))
    try:
        found, wait_s = _waited(accepted.job_id, lambda job: job.status.is_final)
    except StoreUnavailable:
        # The job is accepted, and 503 would say that it is not.
        found, wait_s = None, _wait_s()
    if found is not None and found.job is not None and found.job.status.is_final:
        answer = _document(found)
        answer.headers["Location"] = url_for(".status", job_id=accepted.job_id)
    else:
        answer = _json(to_json({"job_id": accepted.job_id, "status": "queued"}), 202)
        answer.headers["Location"] = url_for(".status", job_id=accepted.job_id)
        outlook = accepted.outlook if found is None else found.outlook
        answer.headers["Retry-After"] = _retry_after(outlook, accepted.result_ttl_s)
        answer.headers["Cache-Control"] = "no-store"
    if accepted.quota is not None:
        answer.headers.update(accepted.quota.fields())
    if accepted.replayed:
        answer.headers["Idempotent-Replayed"] = "true"
    return _preferred(answer, found, wait_s)


def _unread_environ() -> Mapping[str, Any]:
    """The environ of the request, its body still to be read, also where a hook of the app has read it before us.

    Flask keeps what a hook reads, unless it is told not to.
    """
    if "stream" not in request.__dict__:  # where Flask notes that somebody asked for the body
        return request.environ
    return {**request.environ, "wsgi.input": BytesIO(request.get_data())}


def job_status(job_id: str) -> Response:
    found = _found(job_id)
    answer = conditional(_document(found))
    if found.job is None or found.job.status.is_final:
        return _preferred(answer, found, _wait_s())
    known = request.headers.get("If-None-Match")

    def is_as_wanted(job: Job) -> bool:
        if job.status.is_final:
            return True
        return known is not None and not request.if_none_match.contains_weak(job.etag())

    if answer.status_code != 304 and known is not None:
        return _preferred(answer, found, _wait_s())
    waited, wait_s = _waited(job_id, is_as_wanted)
    return _preferred(answer if waited is None else conditional(_document(waited)), waited, wait_s)


def job_result(job_id: str) -> Response:
    """The bare value of a job that succeeded."""
    job = _found(job_id).job
    if job is None or not job.status.is_final:
        raise StillActive("The job has not ended; ask for its status, which says when to ask again.")
    if job.status is not Status.SUCCEEDED or job.outcome is None:
        raise NotPossible("The job failed and has no result; its status says why.")
    answer = _json(job.outcome, 200)
    answer.headers["Cache-Control"] = "no-cache"
    return conditional(answer)


def cancel_job(job_id: str) -> Response:
    _found(job_id)
    return _document(current_api().cancel(job_id))


def delete_job(job_id: str) -> Response:
    with contextlib.suppress(JobDeleted):
        _found(job_id)
        if current_api().control.delete(job_id, current_api().settings.tombstone_ttl_s) == "active":
            raise StillActive("The job has not ended; cancel it first.")
    return Response(status=204)


def list_jobs() -> Response:
    page = current_api().control.page(*_query())
    documents = b", ".join(join_members(job.members()) for job in page.jobs)
    answer = _json(b'{"jobs": [' + documents + b"]}", 200)
    answer.headers["Cache-Control"] = "no-store"
    if page.next_id is not None:
        kept = {name: value for name, value in request.args.items() if name in ("status", "task", "limit")}
        query = urlencode({**kept, "cursor": page.next_id})
        answer.headers["Link"] = f'<{url_for(".list")}?{query}>; rel="next"'
    return answer


def job_deliveries(job_id: str) -> Response:
    """Each attempt to bring the job's webhook, oldest first."""
    _found(job_id)
    attempts = current_api().control.attempts(job_id)
    return _uncached(_json(b'{"attempts": ' + (attempts or b"[]") + b"}", 200))


def redeliver(job_id: str) -> Response:
    found = _found(job_id)
    verdict = current_api().control.redeliver(job_id)
    if verdict == "none":
        raise NotPossible("The job has no webhook that could be sent: it has not ended, or has no callback_url.")
    if verdict == "pending":
        raise NotPossible("The webhook is on its way: attempts are still to come.")
    assert found.job is not None
    answer = _uncached(_json(to_json({"job_id": found.job.id, "callback": {"state": "pending"}}), 202))
    answer.headers["Location"] = url_for(".deliveries", job_id=job_id)
    return answer


def health() -> Response:
    """The process answers; nothing else is asked."""
    return _uncached(_json(to_json({"status": "ok"}), 200))


def ready() -> Response:
    wrong = current_api().unready_because()
    if wrong:
        raise NotReady("; ".join(f"{name}: {what}" for name, what in wrong.items()), wrong)
    return _uncached(_json(to_json({"status": "ready"}), 200))


def _found(job_id: str) -> Found:
    """The job, or the problem that says what is known of its id."""
    if not is_job_id(job_id):
        raise JobUnknown("No job has an id of this form.")
    found = current_api().find(job_id)
    if (found.job.owner if found.job else found.owner) != g.caller:
        raise JobUnknown(UNKNOWN)  # whose job it is, and that it is one, is nobody else's business
    if found.deleted_ms is not None:
        raise JobDeleted(f"The job was deleted at {clock.rfc3339(found.deleted_ms)}.")
    if found.expired_ms is not None:
        raise JobGone("The job ended and its result is past its life.", clock.rfc3339(found.expired_ms))
    if found.job is None:
        raise JobUnknown(UNKNOWN)
    return found


def _document(found: Found) -> Response:
    assert found.job is not None
    answer = _json(found.job.document(), 200)
    answer.headers["Cache-Control"] = "no-cache"
    # Weak while the job is active, since the estimates in its document move and the tag does not.
    answer.set_etag(found.job.etag(), weak=not found.job.status.is_final)
    if not found.job.status.is_final:
        answer.headers["Retry-After"] = _retry_after(found.outlook, found.job.result_ttl_s)
    return answer


def _retry_after(outlook: Outlook, result_ttl_s: int | None) -> str:
    """Never so long that the result may be gone when the caller comes back."""
    readable_s, _ = current_api().settings.lives_s(result_ttl_s)
    return str(outlook.retry_after_s(most_late_s=readable_s / 2))


def conditional(answer: Response) -> Response:
    """The answer, or that the caller has it already. Source: RFC 9110 section 13."""
    etag, is_weak = answer.get_etag()
    if etag is None:
        etag = blake2b(answer.get_data(), digest_size=16).hexdigest()
        answer.set_etag(etag)
    matches = not is_weak and request.if_match.contains(etag)
    if request.headers.get("If-Match", "*").strip() != "*" and not matches:
        raise PreconditionFailed("What is there is not what If-Match names.")
    if request.if_none_match.contains_weak(etag):
        answer.status_code = 304
        answer.set_data(b"")
        answer.headers.pop("Content-Length", None)
    return answer


def _wait_s() -> int | None:
    return preferred_wait_s(request.headers.get("Prefer"), LONGEST_WAIT_S)


def _waited(job_id: str, is_as_wanted: Callable[[Job], bool]) -> tuple[Found | None, int | None]:
    """What there is after the wait that the caller prefers; None where it prefers none or there is no place."""
    wait_s = _wait_s()
    found = current_api().waiting.until(job_id, is_as_wanted, wait_s) if wait_s else None
    return found, wait_s


def _preferred(answer: Response, found: Found | None, wait_s: int | None) -> Response:
    """Says that the answer depends on the preference, and whether it was honoured."""
    if wait_s is not None:
        answer.vary.add("Prefer")
        if found is not None or wait_s == 0:
            answer.headers["Preference-Applied"] = f"wait={wait_s}"
    return answer


def _query() -> tuple[Wanted, str | None, int]:
    """Filter, cursor and size of a page. Raises: MalformedQuery."""
    status, cursor, limit = (request.args.get(name) for name in ("status", "cursor", "limit"))
    if status is not None and status not in list(Status):
        raise MalformedQuery(f"status is {status[:40]!r}; it must be one of: {', '.join(Status)}.")
    if cursor is not None and not is_job_id(cursor):
        raise MalformedQuery("cursor must come from a Link of an earlier page.")
    if limit is not None and not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) > 0):
        raise MalformedQuery(f"limit is {limit[:40]!r}; it must be a whole number from 1 to {PAGE_MOST}.")
    statuses = frozenset(Status) if status is None else frozenset({Status(status)})
    wanted = Wanted(statuses, request.args.get("task"), g.caller)
    return wanted, cursor, min(int(limit or PAGE_DEFAULT), PAGE_MOST)


def _uncached(answer: Response) -> Response:
    answer.headers["Cache-Control"] = "no-store"
    return answer


def current_api() -> Api:
    api = current_app.extensions[EXTENSION][request.blueprint]
    assert isinstance(api, Api)
    return api


def _json(document: bytes, status: int) -> Response:
    return Response(document, status=status, content_type="application/json")
