"""Headers and query parameters by name: where each stands, what it holds, what it is for."""

from __future__ import annotations

from typing import Any

from aj.headers import TRACE_HEADER
from aj.job import Status
from aj.openapi.schemas import JOB_ID, TEXT, Schema

_SECONDS: Schema = {"type": "integer", "minimum": 1}
_ETAG: Schema = {"type": "string", "pattern": '^(W/)?"[^"]*"$'}

# A structured-field string, or the same text bare; a comma and a quote in the quoted form only.
_KEY_PATTERN = r'^([!#-+\--~]{1,255}|"([!#-\[\]-~]|\\["\\]){1,255}")$'

TAKEN: dict[str, tuple[str, Schema, str]] = {
    "Idempotency-Key": (
        "header",
        {"type": "string", "pattern": _KEY_PATTERN},
        "Makes the submission safe to repeat: the same key with the same payload is the same job.",
    ),
    "Prefer": (
        "header",
        TEXT,
        "`wait=N` holds the answer for up to N seconds, 60 at most (RFC 7240). What is malformed is ignored.",
    ),
    TRACE_HEADER: (
        "header",
        TEXT,
        "The caller's trace (W3C Trace Context). It stands in the log beside the job, and goes with the webhook as it "
        "came. What is malformed is ignored.",
    ),
    "If-None-Match": ("header", TEXT, "ETags that the caller has: 304 where one of them still holds."),
    "If-Match": ("header", TEXT, "ETags that the caller relies on: 412 where none of them holds."),
    "status": ("query", {"enum": list(Status)}, "Only jobs of this status."),
    "task": ("query", TEXT, "Only jobs of this task."),
    "limit": (
        "query",
        {"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": 50},
        "Jobs in a page; more than 200 are never given.",
    ),
    "cursor": ("query", JOB_ID, "Where the page begins, from the Link of the page before."),
}

SENT: dict[str, tuple[Schema, str]] = {
    "Accept": (TEXT, "The media type that is accepted."),
    "Cache-Control": (TEXT, "`no-store`, or `no-cache` where there is an ETag to ask with."),
    "Content-Security-Policy": (TEXT, "What the page may load: nothing of any other host."),
    "ETag": (_ETAG, "Changes with the body."),
    "Idempotent-Replayed": ({"const": "true"}, "The answer to an earlier submission with the same key."),
    "Link": ({"type": "string", "pattern": '^<[^>]*>; rel="next"$'}, "Where the next page is (RFC 8288)."),
    "Location": ({"type": "string", "format": "uri-reference"}, "Where to ask next."),
    "Preference-Applied": ({"type": "string", "pattern": "^wait=[0-9]+$"}, "The answer was held as wished."),
    "RateLimit": (
        {"type": "string", "pattern": '^"submissions";r=[0-9]+;t=[0-9]+$'},
        "How many submissions are left, and in how many seconds there are more.",
    ),
    "RateLimit-Policy": (
        {"type": "string", "pattern": '^"submissions";q=[0-9]+;w=[0-9]+$'},
        "How many submissions a caller may send in how many seconds.",
    ),
    "Retry-After": (_SECONDS, "When to ask again, in seconds."),
    "Vary": (TEXT, "The answer depends on `Prefer`."),
    "WWW-Authenticate": (TEXT, "How to show who is calling (RFC 6750)."),
}


def parameter(name: str) -> dict[str, Any]:
    where, schema, description = TAKEN[name]
    return {"name": name, "in": where, "schema": schema, "description": description}


def headers(names: tuple[str, ...]) -> dict[str, Any]:
    """Header objects. A name that ends in `?` is of a header that may be missing."""
    described = {}
    for name in names:
        schema, description = SENT[name.removesuffix("?")]
        described[name.removesuffix("?")] = {
            "required": not name.endswith("?"),
            "schema": schema,
            "description": description,
        }
    return described
