"""What a page may be asked to do: cancel, send again, sign in and out. All by POST, and `guard` has looked at each."""

from __future__ import annotations

import re
from typing import Any

from flask import Response, request

from aj.answers import Asked
from aj.dashboard import guard, render
from aj.dashboard.pages import found_job
from aj.errors import NotPossible

# Of a page of ours: its path below the dashboard, and a query that fits into the form of the sign-in.
_OUR_PAGE = re.compile(r"(/jobs(/[0-9a-f-]{36})?|/deliveries)?/?")
_QUERY = re.compile(r"[!-\"$-~]{1,800}")


def cancel(asked: Asked, job_id: str) -> Response:
    guard.refuse_reader()
    found_job(asked, job_id)
    asked.api.cancel(job_id)
    return render.see_other(f"{render.base()}/jobs/{job_id}?did=cancel")


def redeliver(asked: Asked, job_id: str) -> Response:
    guard.refuse_reader()
    found_job(asked, job_id)
    verdict = asked.api.control.redeliver(job_id)
    if verdict == "none":
        raise NotPossible("The job has no webhook that could be sent.")
    return render.see_other(f"{render.base()}/jobs/{job_id}?did={verdict}")


def sign_in_form(asked: Asked, *, was_wrong: bool = False) -> Response:
    if not asked.api.settings.api_keys or guard.viewer().is_signed_in:
        return render.see_other(render.base())
    status = 403 if was_wrong else 200
    context: dict[str, Any] = {"viewer": guard.viewer(), "here": "", "next": _next(), "was_wrong": was_wrong}
    return render.page(asked, "sign_in.html", status=status, **context)


def sign_in(asked: Asked) -> Response:
    """A browser that shows a key gets another token: whoever knew the last one learns nothing."""
    key = guard.key_shown(asked)
    if key is None:
        return sign_in_form(asked, was_wrong=True)
    token = guard.new_token()
    asked.api.sessions.begin(token, key)
    asked.api.sessions.end(guard.viewer().token)  # nobody goes on with what the browser shows no more
    answer = render.see_other(render.base() + _next())
    guard.tell_token(answer, token)
    return answer


def sign_out(asked: Asked) -> Response:
    asked.api.sessions.end(guard.viewer().token)
    answer = render.see_other(render.base())
    guard.forget_token(answer)
    return answer


def _next() -> str:
    """Where whoever has signed in wants to go: to a page of ours, or to the first one."""
    page, _, query = request.values.get("next", "").partition("?")
    if not _OUR_PAGE.fullmatch(page):
        return ""
    return f"{page}?{query}" if _QUERY.fullmatch(query) else page
