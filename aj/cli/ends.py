"""What is told of an error of the client, and which exit code it stands for."""

from __future__ import annotations

from typing import Any

from aj.cli.exits import Exit
from aj.cli.terminal import say_json, talk
from aj.cli.text import plain
from aj.client import ApiError, ClientError, JobGone, JobTimeout, JobUnknown, NotUnderstood, Unreachable

UNAUTHORIZED, TOO_MANY = 401, 429
SERVERS_FAULT = 500


def exit_of(error: ClientError) -> Exit:
    """The exit code that an error of the client stands for."""
    if isinstance(error, JobGone | JobUnknown):
        return Exit.NO_SUCH_JOB
    if isinstance(error, JobTimeout):
        return Exit.NOT_ENDED
    if isinstance(error, NotUnderstood | Unreachable):
        return Exit.NO_ANSWER
    if isinstance(error, ApiError):
        return Exit.NO_ANSWER if error.status == TOO_MANY or error.status >= SERVERS_FAULT else Exit.REFUSED
    return Exit.USAGE


def tell_error(error: ClientError, as_json: bool) -> Exit:
    """Tells of `error` on standard error, in JSON on standard output too, and gives the exit code."""
    if isinstance(error, JobTimeout):
        talk(f"aj: {plain(str(error))}; it goes on: aj wait {plain(error.job.url)}")
    elif isinstance(error, ApiError):
        talk(f"aj: {error.status}: {plain(error.detail)}")
        for field in error.errors:
            talk(f"  {_text(field.get('pointer'))} {_text(field.get('detail'))}")
        if error.status == UNAUTHORIZED:
            talk("  AJ_API_KEY or --api-key-file gives the key")
    else:
        talk(f"aj: {plain(str(error))}")
    if as_json:
        say_json(error.job.document if isinstance(error, JobTimeout) else {"error": _problem(error)})
    return exit_of(error)


def _problem(error: ClientError) -> dict[str, Any]:
    """The problem as the API told it, else one of the same form."""
    if isinstance(error, ApiError):
        return {"type": error.type, "status": error.status, "detail": error.detail, **error.problem}
    kind = "unreachable" if isinstance(error, Unreachable) else "not-usable"
    return {"type": kind, "detail": str(error)}


def _text(value: object) -> str:
    return plain(value) if isinstance(value, str) else ""
