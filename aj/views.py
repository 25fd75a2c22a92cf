"""The routes of a submission: a request becomes values, one verb is called, its answer becomes a reply.

What they work with comes with the request; they need nothing else of Flask than its requests, so that `short_cut`
can call them too. Nothing is decided here.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from typing import Any

from flask import Request
from werkzeug.datastructures import ETags

from aj.answers import UNCACHED, Asked, Reply, conditional, document, found_job, job_url, json_reply, retry_after
from aj.body import parse_object, read_body
from aj.errors import NotPossible, StillActive, StoreUnavailable, UnsupportedMedia
from aj.headers import TRACE_HEADER, idempotency_key, preferred_wait_s, traceparent
from aj.job import Job, Status, digest, to_json
from aj.store import Found
from aj.waiting import LONGEST_WAIT_S


def submit_job(asked: Asked) -> Reply:
    api, request, fields = asked.api, asked.request, asked.request.headers
    if request.mimetype != "application/json" and fields.get("Content-Type", "").strip():
        raise UnsupportedMedia(f"The Content-Type is {request.content_type!r}; send application/json.")
    if fields.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        raise UnsupportedMedia("The body has a Content-Encoding; send it as it is.")
    members = parse_object(read_body(_unread_environ(request), api.settings.max_body_bytes))
    key, trace = idempotency_key(fields.get("Idempotency-Key")), traceparent(fields.get(TRACE_HEADER))
    accepted = api.submit(members, key, asked.caller, trace)
    try:
        found, wait_s = _waited(asked, accepted.job_id)
    except StoreUnavailable:
        # The job is accepted, and 503 would say that it is not.
        found, wait_s = None, _wait_s(request)
    headers = {"Location": job_url(asked, accepted.job_id)}
    more = accepted.quota.fields() if accepted.quota is not None else {}
    if accepted.replayed:
        more["Idempotent-Replayed"] = "true"
    if found is not None and found.job is not None and found.job.status.is_final:
        reply = document(asked, found, headers | more)
    else:
        outlook = accepted.outlook if found is None else found.outlook
        headers |= {"Retry-After": retry_after(asked, outlook, accepted.result_ttl_s), **UNCACHED, **more}
        reply = json_reply(to_json({"job_id": accepted.job_id, "status": "queued"}), 202, headers)
    return _preferred(reply, found, wait_s)


def _unread_environ(request: Request) -> Mapping[str, Any]:
    """The environ of the request, its body still to be read, also where a hook of the app has read it before us.

    Flask keeps what a hook reads, unless it is told not to.
    """
    if "stream" not in request.__dict__:  # where Flask notes that somebody asked for the body
        return request.environ
    return {**request.environ, "wsgi.input": BytesIO(request.get_data())}


def job_status(asked: Asked, job_id: str) -> Reply:
    request, found = asked.request, found_job(asked, job_id)
    reply = conditional(asked, document(asked, found))
    if found.job is None or found.job.status.is_final:
        return _preferred(reply, found, _wait_s(request))
    known = request.headers.get("If-None-Match")
    if reply.status != 304 and known is not None:
        return _preferred(reply, found, _wait_s(request))
    is_news = None if known is None else partial(_is_news, request.if_none_match)
    waited, wait_s = _waited(asked, job_id, is_news)
    return _preferred(reply if waited is None else conditional(asked, document(asked, waited)), waited, wait_s)


def job_result(asked: Asked, job_id: str) -> Reply:
    """The bare value of a job that succeeded."""
    job = found_job(asked, job_id).job
    if job is None or not job.status.is_final:
        raise StillActive("The job has not ended; ask for its status, which says when to ask again.")
    if job.status is not Status.SUCCEEDED or job.outcome is None:
        raise NotPossible("The job failed and has no result; its status says why.")
    headers = {"Cache-Control": "no-cache", "ETag": f'"{digest(job.outcome)}"'}
    return conditional(asked, json_reply(job.outcome, 200, headers))


def _is_news(tags: ETags, job: Job) -> bool:
    return not tags.contains_weak(job.etag())


def _wait_s(request: Request) -> int | None:
    return preferred_wait_s(request.headers.get("Prefer"), LONGEST_WAIT_S)


def _waited(
    asked: Asked, job_id: str, is_as_wanted: Callable[[Job], bool] | None = None
) -> tuple[Found | None, int | None]:
    """What there is after the wait that the caller prefers; None where it prefers none or there is no place."""
    wait_s = _wait_s(asked.request)
    if not wait_s:
        return None, wait_s
    return asked.api.waiting.until(job_id, is_as_wanted, wait_s, partial(_has_hung_up, asked.request)), wait_s


def _has_hung_up(request: Request) -> bool:
    """Whether the client has closed its connection, as far as the server lets us see it."""
    connection = request.environ.get("gunicorn.socket")
    try:
        return connection is not None and connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except (BlockingIOError, InterruptedError, ValueError):  # nothing to read; or TLS, which takes no such wishes
        return False
    except OSError:
        return True


def _preferred(reply: Reply, found: Found | None, wait_s: int | None) -> Reply:
    """Says that the answer depends on the preference, and whether it was honoured."""
    if wait_s is None:
        return reply
    applied = {"Preference-Applied": f"wait={wait_s}"} if found is not None or wait_s == 0 else {}
    return Reply(reply.status, {**reply.fields, "Vary": "Prefer", **applied}, reply.body)
