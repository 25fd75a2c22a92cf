"""A short cut past Flask for the two requests that nearly all are: a submission, and a look at a job.

It calls the same views with the same requests, and leaves out what Flask does around them: contexts, routing, hooks,
the making of a response. That is a quarter to a third of what such a request costs a process. Only an app of our own
has it, and only while nothing has been added to it: whatever might see the difference shuts it. It must never answer
otherwise than Flask would; what it does not know for sure it leaves to Flask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from threading import Lock
from types import FunctionType
from typing import TYPE_CHECKING, Any

import flask.app
from blinker import Signal
from flask import Flask, Request, signals

from aj.access import caller_of
from aj.answers import EXTENSION, Answer, Api, Asked
from aj.job import is_job_id
from aj.problems import failure
from aj.views import job_status, submit_job

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

JOBS, USUAL = "/jobs", {200: "200 OK", 202: "202 ACCEPTED"}
# Of other hosts some are refused by Flask, before it looks at anything else.
_PLAIN_HOST = re.compile(r"[0-9A-Za-z-]{1,50}(?:\.[0-9A-Za-z-]{1,50})*(?::[0-9]{1,5})?")
# What monitors replace, to see each request.
WATCHED = ("wsgi_app", "full_dispatch_request", "dispatch_request", "preprocess_request", "process_response")


class ShortCut:
    """The WSGI application of `app`, whose routes are those of one blueprint, without a prefix.

    Whether the short cut is open shows with the first request, which Flask answers: from then on it refuses hooks.
    `through_flask` is the way around it, which answers all else.
    """

    def __init__(self, app: Flask, blueprint: str) -> None:
        self._app, self._blueprint = app, blueprint
        self.through_flask: WSGIApplication = app.wsgi_app
        # Where somebody has put something around it already, nothing that can come later opens it.
        self._as_made = _state(app) if not vars(app).keys() & set(WATCHED) else {}
        self._has_begun, self._beginning = False, Lock()
        self._api: Api | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if self._api is None:
            with self._beginning:
                if not self._has_begun:
                    self._has_begun, self._api = True, self._found_open()
            return self.through_flask(environ, start_response)
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        job_id = path.removeprefix(f"{JOBS}/") if method in ("GET", "HEAD") else ""
        is_ours = path == JOBS if method == "POST" else is_job_id(job_id)
        if not is_ours or "HTTP_UPGRADE" in environ or not _PLAIN_HOST.fullmatch(environ.get("HTTP_HOST", "")):
            return self.through_flask(environ, start_response)
        if job_id:
            return _answer(self._api, Request(environ), job_id, start_response)
        with self._app.app_context():  # which is promised to those who check parameters with code of their own
            return _answer(self._api, Request(environ), job_id, start_response)

    def _found_open(self) -> Api | None:
        """What the views work with, where Flask would do nothing but call them."""
        is_untouched = self._as_made == _state(self._app) and _is_flasks_own(type(self._app))
        has_listener = any(each.receivers for each in vars(signals).values() if isinstance(each, Signal))
        api: Api = self._app.extensions[EXTENSION][self._blueprint]
        return api if is_untouched and not has_listener else None


def _answer(api: Api, request: Request, job_id: str, start_response: StartResponse) -> Iterable[bytes]:
    try:
        asked = Asked(api, request, caller_of(request.headers.get("Authorization"), api.settings.api_keys))
        reply = job_status(asked, job_id) if job_id else submit_job(asked)
    except Exception as error:
        why, answer = failure(error, request, job_id)
        if not job_id:
            api.figures.count_refused(why)
        return answer(request.environ, start_response)
    line = USUAL.get(reply.status)
    if line is None:
        return Answer(reply)(request.environ, start_response)
    # What the response would come to, which costs as much to make as to find the job.
    start_response(line, [*reply.fields.items(), ("Content-Length", str(len(reply.body)))])
    return () if request.method == "HEAD" else (reply.body,)


def _is_flasks_own(kind: type[Flask]) -> bool:
    """Whether the parts that see each request are as Flask has them, whatever may have been put around them since."""
    methods = [vars(kind).get(name) for name in WATCHED]
    # `type`, since a wrapper may pretend to be a function.
    return all(type(each) is FunctionType and each.__globals__ is vars(flask.app) for each in methods)


def _state(app: Flask) -> dict[str, Any]:
    """All that an app of Flask is: hooks, handlers, routes, configuration. Extensions keep their own things there."""
    return {name: _copy(value) for name, value in vars(app).items() if name not in ("extensions", "wsgi_app")}


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(each) for name, each in value.items()}
    return list(value) if isinstance(value, list) else value
