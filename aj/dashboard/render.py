"""Pages as responses: templates of our own, and the header fields that keep a browser from doing anything else.

The templates are not those of the app: a host has its own, maybe of the same names, and may change what its environment
escapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from flask import Response, current_app, g, request
from jinja2 import Environment, PackageLoader, StrictUndefined
from werkzeug.datastructures import Headers

from aj import clock
from aj.answers import EXTENSION, Answer, Api, Asked, Reply, conditional
from aj.dashboard import words
from aj.job import digest
from aj.version import __version__

ROOT, HTML = "dashboard", "text/html; charset=utf-8"
FIELD = "token"  # of each form
ASSETS = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FIELDS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer` a browser sends `Origin: null` with our own forms, and nothing could be told from it.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NO_STORE = {"Cache-Control": "no-store", "Vary": "Cookie"}
# What moves while nothing changes: the script of the page counts it up by itself.
_MOVING = re.compile(rb'(<time [^>]*>)[^<]*|data-now="\d*"')


_ACTED_ON = re.compile(r"/jobs/([0-9a-f-]{36})/[a-z]+$")


class Page(Answer):
    """A response whose protective fields are ours when it leaves, whatever hooks of the app have done to them."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply)
        self._caching = {name: reply.fields[name] for name in NO_STORE if name in reply.fields}

    def get_wsgi_headers(self, environ: Any) -> Headers:
        headers = super().get_wsgi_headers(environ)
        headers.update({**FIELDS, **self._caching})
        return headers


def page(asked: Asked, template: str, now_ms: int | None = None, status: int = 200, **context: Any) -> Response:
    """A page, with a tag by which the script of the page learns that nothing has changed."""
    body = _render(template, base(), now_ms, context)
    tag = digest(_MOVING.sub(rb"\1", body))
    reply = Reply(status, {"Content-Type": HTML, **NO_STORE, "ETag": f'W/"{tag}"'}, body)
    return Page(conditional(asked, reply) if status == HTTPStatus.OK else reply)


def error_page(status: int, title: str, detail: str, fields: Mapping[str, str], root: str | None = None) -> Response:
    """What went wrong, for people. `root` is where the dashboard stands, where routing has not found out."""
    looks = g.get("aj_viewer") if root is None else None
    # What was asked for by a POST is not asked for again.
    again = status == HTTPStatus.SERVICE_UNAVAILABLE and request.method in ("GET", "HEAD")
    root = base() if root is None else root
    acted_on = _ACTED_ON.search(request.path) if request.method == "POST" else None
    job_url = f"{root}/jobs/{acted_on[1]}" if acted_on else None
    rest = detail.removeprefix(title).lstrip("; ")  # what the heading has said is not said again
    detail = rest[:1].upper() + rest[1:]
    context = {"viewer": looks, "here": "", "status": int(status), "heading": title, "detail": detail, "again": again}
    body = _render("error.html", root, None, {**context, "job_url": job_url})
    return Page(Reply(status, {"Content-Type": HTML, **NO_STORE, **fields}, body))


def see_other(url: str) -> Response:
    """After an action, or where something else has to come first."""
    return Page(Reply(303, {"Location": url, **NO_STORE}, b""))


def come_again() -> Response:
    """The same address once more, with all the cookies that a browser shows to its own site only."""
    body = b'<!doctype html><html lang="en"><title>aj</title><p><a href="">Go on</a></p></html>'
    return Page(Reply(200, {"Content-Type": HTML, **NO_STORE, "Refresh": "0"}, body))


def asset(asked: Asked, name: str) -> Response:
    body = _asset(name)
    fields = {"Content-Type": ASSETS[name], "Cache-Control": "no-cache", "ETag": f'"{digest(body)}"'}
    return Page(conditional(asked, Reply(200, fields, body)))


def base() -> str:
    """Where the dashboard stands, as a browser sees it: beside the jobs of its blueprint. What `url_for` gives may end
    with a query, which the app adds to each address of its own, and nothing could be put behind it."""
    api = current_app.extensions[EXTENSION][request.blueprint]
    assert isinstance(api, Api)
    return api.jobs_url(request.script_root).removesuffix("jobs/") + ROOT


def _render(template: str, root: str, now_ms: int | None, context: Mapping[str, Any]) -> bytes:
    now_ms = clock.now_ms() if now_ms is None else now_ms
    posted = request.method == "POST"  # whose page cannot be refreshed
    text = (
        _environment()
        .get_template(template)
        .render(base=root, now_ms=now_ms, field=FIELD, version=__version__, posted=posted, **context)
    )
    return text.encode("utf-8", "replace")  # half a surrogate pair, which JSON may hold, is no character


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("aj.dashboard"),
        autoescape=True,
        finalize=words.honest,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        ago=words.ago,
        count=words.count,
        full=words.full,
        lasting=words.length,
        rfc3339=clock.rfc3339,
        size=words.size,
        took=words.took,
    )
    return made


@cache
def _asset(name: str) -> bytes:
    return files("aj.dashboard").joinpath("static", name).read_bytes()
