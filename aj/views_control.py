"""The routes that show and change jobs from outside: cancel, delete, list, deliveries; and whether all is well."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from urllib.parse import urlencode

from werkzeug.exceptions import PreconditionFailed

from aj.answers import (
    UNCACHED,
    Asked,
    Reply,
    conditional,
    document,
    found_job,
    job_url,
    json_reply,
    known_job,
    uncached,
)
from aj.errors import JobDeleted, MalformedQuery, NotPossible, NotReady, StillActive
from aj.job import Status, is_job_id, join_members, to_json
from aj.store import Found, Wanted

PAGE_DEFAULT, PAGE_MOST = 50, 200


def cancel_job(asked: Asked, job_id: str) -> Reply:
    _check_precondition(asked, found_job(asked, job_id))
    return document(asked, known_job(asked, asked.api.cancel(job_id)))


def delete_job(asked: Asked, job_id: str) -> Reply:
    with contextlib.suppress(JobDeleted):
        _check_precondition(asked, found_job(asked, job_id))
        if asked.api.control.delete(job_id, asked.api.settings.tombstone_ttl_s) == "active":
            raise StillActive("The job has not ended; cancel it first.")
    return Reply(204, {**UNCACHED}, b"")


def list_jobs(asked: Asked) -> Reply:
    page = asked.api.control.page(*_query(asked))
    documents = b", ".join(join_members(job.members()) for job in page.jobs)
    reply = uncached(json_reply(b'{"jobs": [' + documents + b"]}", 200))
    if page.next_id is not None:
        kept = {name: value for name, value in asked.request.args.items() if name in ("status", "task", "limit")}
        query = urlencode({**kept, "cursor": page.next_id})
        reply.fields["Link"] = f'<{job_url(asked, "").removesuffix("/")}?{query}>; rel="next"'
    return reply


def job_deliveries(asked: Asked, job_id: str) -> Reply:
    """Each attempt to bring the job's webhook, oldest first."""
    found_job(asked, job_id)
    attempts = asked.api.control.attempts(job_id)
    return uncached(json_reply(b'{"attempts": ' + (attempts or b"[]") + b"}", 200))


def redeliver(asked: Asked, job_id: str) -> Reply:
    found = found_job(asked, job_id)
    verdict = asked.api.control.redeliver(job_id)
    if verdict == "none":
        raise NotPossible("The job has no webhook that could be sent: it has not ended, or has no callback_url.")
    if verdict == "pending":
        raise NotPossible("The webhook is on its way: attempts are still to come.")
    assert found.job is not None
    shown = to_json({"job_id": found.job.id, "callback": {"state": "pending"}})
    return json_reply(shown, 202, {**UNCACHED, "Location": f"{job_url(asked, job_id)}/deliveries"})


def health(_: Asked) -> Reply:
    """The process answers; nothing else is asked."""
    return uncached(json_reply(to_json({"status": "ok"}), 200))


def ready(asked: Asked) -> Reply:
    wrong = asked.api.unready_because()
    if wrong:
        raise NotReady("; ".join(f"{name}: {what}" for name, what in wrong.items()), wrong)
    return uncached(json_reply(to_json({"status": "ready"}), 200))


def _check_precondition(asked: Asked, found: Found) -> None:
    """Raises: PreconditionFailed: the caller relies on another state of the job. Source: RFC 9110 section 13.2.2."""
    if conditional(asked, document(asked, found)).status == HTTPStatus.NOT_MODIFIED:
        raise PreconditionFailed("What is there is what If-None-Match names.")


def _query(asked: Asked) -> tuple[Wanted, str | None, int]:
    """Filter, cursor and size of a page. Raises: MalformedQuery."""
    asked_for = asked.request.args
    status, cursor, limit = (asked_for.get(name) for name in ("status", "cursor", "limit"))
    if status is not None and status not in list(Status):
        raise MalformedQuery(f"status is {status[:40]!r}; it must be one of: {', '.join(Status)}.")
    if cursor is not None and not is_job_id(cursor):
        raise MalformedQuery("cursor must come from a Link of an earlier page.")
    if limit is not None and not (limit.isascii() and limit.isdigit() and len(limit) < 10 and int(limit) > 0):
        raise MalformedQuery(
            f"limit is {limit[:40]!r}; it must be a whole number from 1; a page holds {PAGE_MOST} at most."
        )
    statuses = frozenset(Status) if status is None else frozenset({Status(status)})
    wanted = Wanted(statuses, asked_for.get("task"), (asked.caller,))
    return wanted, cursor, min(int(limit or PAGE_DEFAULT), PAGE_MOST)
