"""`aj submit`: from words on a line to a job, and to its result where that is waited for."""

from __future__ import annotations

import math
import shlex
import uuid
from typing import Any

import click

from aj import clock
from aj.cli.api import Api, seconds, with_api
from aj.cli.complete import task_names
from aj.cli.ends import tell_error
from aj.cli.exits import Exit
from aj.cli.jobs import wait_for
from aj.cli.terminal import say, say_json, talk
from aj.cli.text import plain
from aj.cli.values import Input, body_of, members, mistaken, read
from aj.client import ApiError, Unreachable

HELD_S = 1


@click.command
@click.argument("pairs", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--text", "texts", multiple=True, metavar="NAME=VALUE", help="A parameter whose value is always text.")
@click.option("--body", type=Input(), help="A file with the whole JSON object; - is standard input.")
@click.option("--task", shell_complete=task_names, help="The task to run, where it is not the default one.")
@click.option("--callback-url", metavar="URL", help="Where the webhook goes when the job has ended.")
@click.option(
    "--metadata", multiple=True, metavar="NAME=VALUE", help="A member of the metadata; more of them may follow."
)
@click.option("--key", help="The Idempotency-Key: the same key again is the same job. One is made where none is given.")
@click.option("--wait", is_flag=True, help="Wait for the end, and print the result.")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    callback=seconds,
    help="With --wait: how long to wait; for ever where not given.",
)
@with_api
def submit(api: Api, **given: Any) -> int:
    """Submit a job, and print its URL; with --wait, its result as JSON.

    NAME=VALUE gives the task a parameter. The value is JSON where it reads as JSON, else text:

    \b
      aj submit n=5
      aj submit --task thumbnails album=summer 'sizes=[64, 256]'
      aj submit --task greet --text name=true    # the text "true"
      echo '{"n": 5}' | aj submit --body -
    """
    if given["timeout_s"] is not None and not given["wait"]:
        raise click.UsageError("--timeout says how long --wait waits; give both")
    key = str(uuid.uuid4()) if given["key"] is None else given["key"]
    body, within_s = _body(given), given["timeout_s"]
    begun_s, held_s = clock.monotonic_s(), _held_s(given)
    left_s = math.inf if within_s is None else within_s - held_s
    try:
        job = api.client.submit(body, idempotency_key=key, timeout_s=min(api.patience_s, left_s), wait_s=held_s)
    except KeyboardInterrupt:
        talk(f"aj: interrupted; {_is_safe_again(key)}")
        return Exit.INTERRUPTED
    except Unreachable as error:
        code = tell_error(error, api.as_json)
        talk(f"  {_is_safe_again(key)}")
        is_over = error.retryable and error.last is None and left_s <= api.patience_s
        return Exit.NOT_ENDED if is_over else code
    except ApiError as error:
        code = tell_error(error, api.as_json)
        if error.idempotency_key is not None:
            talk(f"  {_is_safe_again(key)}")
        for pair in mistaken(body, given["pairs"], error.errors):
            talk(f"  the value was read as JSON; as text it is --text {plain(shlex.quote(pair))}")
        return code
    if given["wait"]:
        return wait_for(api, job, None if within_s is None else max(0.0, begun_s + within_s - clock.monotonic_s()))
    if api.as_json:
        say_json(job.document)
    else:
        say(plain(job.url))
    return Exit.DONE


def _is_safe_again(key: str) -> str:
    return f"the job may have been accepted: the same again with --key {key} is the same job"


def _held_s(given: dict[str, Any]) -> int:
    """How long the submission itself may be held: a quick job has ended then, and of others progress is told soon.

    Where there is little time, it is for the answer, without which nothing is known of the job.
    """
    within_s = given["timeout_s"]
    return HELD_S if given["wait"] and (within_s is None or within_s >= 2 * HELD_S) else 0


def _body(given: dict[str, Any]) -> dict[str, Any]:
    """The members of the file, over them those of the line, over them our own three."""
    body = {} if given["body"] is None else body_of(read(given["body"]))
    typed = members(given["pairs"], given["texts"])
    metadata = members(given["metadata"]) if given["metadata"] else None
    for name, value in (("task", given["task"]), ("callback_url", given["callback_url"]), ("metadata", metadata)):
        if value is None:
            continue
        if name in typed:
            raise click.UsageError(f"{name!r} is given twice")
        typed[name] = value
    return body | typed
