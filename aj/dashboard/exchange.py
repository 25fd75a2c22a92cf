"""What a caller of the API would see of a job: the request as a command line, and the answer with its header fields."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from http import HTTPStatus

from aj.answers import Asked, document, job_url
from aj.dashboard.samples import first_submission
from aj.dashboard.words import MOST_SHOWN, visible
from aj.store import Found


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as curl makes it, and the answer: its first line, its fields, and its body, maybe cut."""

    command: str
    status_line: str
    fields: list[tuple[str, str]]
    body: str
    is_cut: bool


def exchange(asked: Asked, found: Found) -> Exchange:
    """The look at a job as it stands."""
    assert found.job is not None
    reply = document(asked, found)
    status = HTTPStatus(reply.status)
    return Exchange(
        command=f"curl -i {_key(asked)}{shlex.quote(_address(asked, found.job.id))}",
        status_line=f"HTTP/1.1 {status.value} {status.phrase.upper()}",
        fields=[*reply.fields.items()],
        body=visible(reply.body[:MOST_SHOWN].decode("utf-8", "ignore")),
        is_cut=len(reply.body) > MOST_SHOWN,
    )


def first_command(asked: Asked) -> str | None:
    """A submission to begin with, which the API accepts; None where none is known."""
    url = shlex.quote(_address(asked, "").rstrip("/"))
    body = first_submission(asked.api.submit.registry, asked.api.settings.max_body_bytes)
    if body is None:
        return None
    return f"curl -i {_key(asked)}-H 'Content-Type: application/json' -d {shlex.quote(body)} {url}"


def _address(asked: Asked, job_id: str) -> str:
    return f"{asked.request.scheme}://{asked.request.host}{job_url(asked, job_id)}"


def _key(asked: Asked) -> str:
    return '-H "Authorization: Bearer $AJ_API_KEY" ' if asked.api.settings.api_keys else ""
