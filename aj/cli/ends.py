"""What is told of an error of the client, and which exit code it stands for."""

from __future__ import annotations

from typing import Any

from aj.cli.exits import Exit
from aj.cli.terminal import say_json, talk
from aj.cli.text import plain
from aj.client import ApiError, ClientError, JobGone, JobTimeout, JobUnknown

RETRYABLE = 429
SERVERS_FAULT = 500


def exit_of(error: ClientError) -> Exit:
    """The exit code that an error of the client stands for."""
    if isinstance(error, JobGone | JobUnknown):
        return Exit.NO_SUCH_JOB
    if isinstance(error, JobTimeout):
        return Exit.NOT_ENDED
    if isinstance(error, ApiError) and RETRYABLE != error.status < SERVERS_FAULT:
        return Exit.REFUSED
    return Exit.NO_ANSWER


def tell_error(error: ClientError, as_json: bool) -> Exit:
    """Tells of `error` on standard error, in JSON on standard output too, and gives the exit code."""
    code = exit_of(error)
    if isinstance(error, JobTimeout):
        if as_json:
            say_json(error.job.document)
        talk(f"aj: the job has not ended in time; it goes on: {plain(error.job.url)}")
        return code
    talk(f"aj: {plain(str(error))}")
    if isinstance(error, ApiError):
        for field in error.errors or ():
            talk(f"  {plain(str(field.get('pointer', '')))}: {plain(str(field.get('detail', '')))}")
    if as_json:
        say_json({"error": _problem(error)})
    return code


def _problem(error: ClientError) -> dict[str, Any]:
    if isinstance(error, ApiError) and error.problem:
        return dict(error.problem)
    made: dict[str, Any] = {"type": "unreachable", "detail": str(error)}
    if isinstance(error, ApiError):
        made |= {"type": "about:blank", "status": error.status}
    return made
