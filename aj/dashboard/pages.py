"""The pages that show: the overview, jobs, one job, deliveries. They change nothing, whatever they are asked."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from flask import Response, request
from werkzeug.exceptions import NotFound
from werkzeug.urls import iri_to_uri

from aj.answers import Asked, Reply, known_job
from aj.dashboard import render
from aj.dashboard.exchange import exchange, first_command
from aj.dashboard.guard import viewer
from aj.dashboard.plot import plot
from aj.dashboard.timeline import timeline, tried
from aj.dashboard.words import parsed, readable_json, without_query
from aj.errors import JobUnknown, MalformedQuery
from aj.job import CallbackState, ErrorType, Job, Status, is_job_id
from aj.store import OF_CALLBACK, SHOWN, Details, Found, Page, Wanted

PER_PAGE, LATEST = 50, 8
FIELDS = (*SHOWN, "progress", *OF_CALLBACK)
_BEGINNING = re.compile(r"[0-9a-f-]{1,36}")


def overview(asked: Asked) -> Response:
    """What happens now, and what the last hour brought."""
    api, looks = asked.api, viewer()
    latest = _jobs(api.control.page(_wanted(), None, LATEST).jobs)
    context: dict[str, Any] = {"latest": latest, "command": None if latest else first_command(asked)}
    seen = api.board.overview(api.settings.queues)
    context["idle"] = [queue.name for queue in seen.queues if not queue.living]
    context["is_suspended"] = seen.is_suspended
    if not looks.sees_all:
        # Of the whole deployment only what `GET /readyz` tells everybody.
        return _page(asked, "own.html", "overview", seen.now_ms, counts=api.board.counts(looks.name), **context)
    plots = [
        plot("Succeeded", "jobs succeeded", seen.minutes, [each.succeeded for each in seen.minutes]),
        plot("Failed", "jobs failed", seen.minutes, [each.failed for each in seen.minutes]),
    ]
    hands = [worker.job for queue in seen.queues for worker in queue.workers if worker.job] + seen.unheard
    context["progress"] = {each.id: _progress(each.progress) for each in hands}
    oldest = min((queue.first_since_ms for queue in seen.queues if queue.first_since_ms is not None), default=None)
    waiting = sum(queue.jobs for queue in seen.queues)
    return _page(
        asked,
        "overview.html",
        "overview",
        seen.now_ms,
        seen=seen,
        plots=plots,
        oldest_ms=oldest,
        waiting=waiting,
        **context,
    )


def jobs(asked: Asked) -> Response:
    """A page of jobs, newest first; with an id, or its beginning, those that have it."""
    api, looks = asked.api, viewer()
    sought, cursor = request.args.get("id", "").strip().lower(), request.args.get("cursor")
    if is_job_id(sought):
        return render.see_other(f"{render.base()}/jobs/{sought}")
    if cursor is not None and not is_job_id(cursor):
        raise MalformedQuery("This page does not exist; begin with the first one.")
    chosen = {name: request.args.get(name, "") for name in ("status", "task", "owner")}
    is_sound = chosen["status"] in ("", *Status) and chosen["owner"] in ("", *looks.owners)
    is_sound = is_sound and (not sought or _BEGINNING.fullmatch(sought) is not None)
    found = api.control.page(_wanted(beginning=sought, **chosen), cursor, PER_PAGE) if is_sound else Page([], None)
    kept = {name: value for name, value in {"id": sought, **chosen}.items() if value}
    is_empty = not (kept or cursor or found.jobs)
    return _page(
        asked,
        "jobs.html",
        "jobs",
        jobs=_jobs(found.jobs),
        chosen=chosen,
        sought=sought,
        statuses=list(Status),
        tasks=api.task_names,
        owners=[each for each in looks.owners if each] if len(looks.owners) > 1 else [],
        is_first=cursor is None,
        first_url=_query(kept),
        next_url=_query({**kept, "cursor": found.next_id}) if found.next_id else None,
        is_empty=is_empty,
        command=first_command(asked) if is_empty else None,
    )


def job(asked: Asked, job_id: str) -> Response:
    """All that is known of one job."""
    found = found_job(asked, job_id)
    shown, details = found.job, asked.api.board.details(job_id)
    assert shown is not None
    now_ms = shown.created_ms + round(found.age_s * 1000)
    due_ms = now_ms + round(found.outlook.due_in_s * 1000) if found.outlook.due_in_s else None
    is_owed = shown.callback is not None and shown.callback.state is CallbackState.PENDING
    return _page(
        asked,
        "job.html",
        "jobs",
        now_ms,
        job=_shown(shown),
        details=details,
        worker=details.worker if viewer().sees_all else None,  # its host and process are not a caller's
        events=timeline(shown, details, now_ms, due_ms),
        exchange=exchange(asked, found),
        position=found.outlook.position if not shown.status.is_final else None,
        eta_s=found.outlook.eta_s if not shown.status.is_final else None,
        params=None if details.params is None else readable_json(details.params),
        metadata=None if shown.metadata is None else readable_json(shown.metadata),
        result=readable_json(shown.outcome) if shown.status is Status.SUCCEEDED and shown.outcome is not None else None,
        result_bytes=len(shown.outcome or b""),
        error=parsed(shown.outcome) if shown.status is Status.FAILED else None,
        attempts=tried(details.attempts),
        can_cancel=not shown.status.is_final,
        can_send=shown.callback is not None and not is_owed,
        is_settled=shown.status.is_final and not is_owed,
        done=_done(request.args.get("did", ""), shown, details),
    )


def _done(word: str, shown: Job, details: Details) -> str:
    """What an action has done, where that can be true: anybody can write the address of a page. Else empty."""
    hook = shown.callback if shown.status.is_final else None
    is_cancelled = shown.status is Status.FAILED and parsed(shown.outcome).get("type") == ErrorType.CANCELLED
    true = {
        "cancel": is_cancelled or (details.asked_to_stop and not shown.status.is_final),
        "pending": hook is not None and hook.state is CallbackState.PENDING,
        # Sending again begins to count anew, and the log of attempts goes on.
        "sent": hook is not None and hook.attempts < len(details.attempts),
    }
    return word if true.get(word) else ""


def result(asked: Asked, job_id: str) -> Response:
    """The bare value of a job that succeeded."""
    shown = found_job(asked, job_id).job
    if shown is None or shown.status is not Status.SUCCEEDED or shown.outcome is None:
        raise NotFound("The job has no result.")
    return render.Page(Reply(200, {"Content-Type": "application/json", **render.NO_STORE}, shown.outcome))


def deliveries(asked: Asked) -> Response:
    """Webhooks: those that are owed, or those of recent jobs that ended so. A caller's go by its own jobs."""
    api, looks = asked.api, viewer()
    state, cursor = request.args.get("state", "pending"), request.args.get("cursor", "")
    context: dict[str, Any] = {
        "state": state,
        "states": list(CallbackState),
        "next_url": None,
        "owed": [],
        "jobs": [],
        "since": {},
    }
    if state == CallbackState.PENDING and looks.sees_all:
        first = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 9 else 0
        owed, has_more = api.board.owed(first, PER_PAGE)
        context["owed"] = [(each, _shown(each.job) if each.job else None) for each in owed]
        context["next_url"] = _query({"state": state, "cursor": first + PER_PAGE}) if has_more else None
        ids = [each.job_id for each in owed]
    elif state in list(CallbackState):
        if cursor and not is_job_id(cursor):
            raise MalformedQuery("This page does not exist; begin with the first one.")
        found = api.control.page(_wanted(state=state), cursor or None, PER_PAGE)
        context["jobs"] = _jobs(found.jobs)
        context["next_url"] = _query({"state": state, "cursor": found.next_id}) if found.next_id else None
        ids = [each.id for each in found.jobs]
        context["since"] = api.board.owed_since(ids) if state == CallbackState.PENDING else {}
    else:
        raise MalformedQuery("A webhook never stands so.")
    last = {job_id: made[-1] for job_id, log in api.board.attempts(ids).items() if (made := tried(log))}
    return _page(asked, "deliveries.html", "deliveries", last=last, **context)


def asset(asked: Asked, asset: str) -> Response:
    if asset not in render.ASSETS:
        raise NotFound("The page has no such part.")
    return render.asset(asked, asset)


def found_job(asked: Asked, job_id: str) -> Found:
    """The job, where the viewer may see it. Raises: JobUnknown, JobGone, JobDeleted, StoreUnavailable."""
    if not is_job_id(job_id):
        raise JobUnknown("No job has an id of this form.")
    return known_job(asked, asked.api.find(job_id), whosever=len(viewer().owners) > 1)


def _page(asked: Asked, template: str, here: str, now_ms: int | None = None, **context: Any) -> Response:
    return render.page(asked, template, now_ms, viewer=viewer(), here=here, **context)


def _wanted(status: str = "", task: str = "", owner: str = "", beginning: str = "", state: str = "") -> Wanted:
    """What of the viewer's jobs is asked for; an empty word asks for all."""
    owners = viewer().owners
    statuses = {Status(status)} if status else {each for each in Status if each.is_final or not state}
    return Wanted(
        statuses=frozenset(statuses),
        task=task or None,
        owners=(owner,) if owner and owner in owners else owners,
        callbacks=frozenset({CallbackState(state)}) if state else None,
        beginning=beginning,
        shown=FIELDS,
    )


def _jobs(found: list[Job]) -> list[dict[str, Any]]:
    return [_shown(each) for each in found]


def _shown(shown: Job) -> dict[str, Any]:
    """What templates read of a job."""
    return {
        **_progress(shown.progress),
        "it": shown,
        "id": shown.id,
        "status": str(shown.status),
        "url": without_query(shown.callback_url) if shown.callback_url else None,
    }


def _progress(report: bytes | None) -> dict[str, Any]:
    members = parsed(report)
    fraction = members.get("fraction")
    is_share = isinstance(fraction, int | float) and 0 <= fraction <= 1
    return {"fraction": fraction if is_share else None, "message": members.get("message")}


def _query(members: dict[str, Any]) -> str:
    """The address of this page with another query."""
    path = iri_to_uri(request.script_root + request.path)
    return f"{path}?{urlencode(members)}" if members else path
