"""The commands that look at jobs and act on them: `status`, `wait`, `cancel`, `list`, `deliveries`, `redeliver`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import click

from aj.cli.api import Api, seconds, with_api
from aj.cli.complete import job_names, task_names
from aj.cli.exits import Exit
from aj.cli.follow import follow
from aj.cli.terminal import output, say, say_json, talk, talk_to
from aj.cli.text import plain
from aj.cli.view import ATTEMPTS_HEAD, COLOURS, LIST_HEAD, attempt_line, failure, job_lines, list_line
from aj.client import Job

USUAL_MOST = 50
_job: Callable[[Callable[..., Any]], Callable[..., Any]] = click.argument(
    "named", metavar="JOB", shell_complete=job_names
)


def wait_for(api: Api, job: Job, timeout_s: float | None) -> Exit:
    """Waits for the end of `job`, tells of it, and prints the result."""
    screen = talk_to()
    try:
        job = follow(job, timeout_s, screen)
    except KeyboardInterrupt:
        talk(f"aj: interrupted; the job goes on: aj wait {plain(job.url)}")
        return Exit.INTERRUPTED
    succeeded = job.status == "succeeded"
    word = screen.painted(job.status, COLOURS[job.status])
    talk(word if succeeded else f"{word}: {failure(job.document)}")
    if api.as_json:
        say_json(job.document)
    elif succeeded:
        say_json(job.document.get("result"))
    return Exit.DONE if succeeded else Exit.FAILED


@click.command
@_job
@with_api
def status(api: Api, named: str) -> int:
    """Show how a job stands. The exit code is 0 also where it has failed."""
    _show(api, api.job(named).refresh())
    return Exit.DONE


@click.command
@_job
@click.option(
    "--timeout", "timeout_s", metavar="SECONDS", callback=seconds, help="How long to wait; for ever where not given."
)
@with_api
def wait(api: Api, named: str, timeout_s: float | None) -> int:
    """Wait for the end of a job, and print its result as JSON.

    Progress is told on standard error: a line that moves on a terminal, plain lines at changes elsewhere.
    """
    return wait_for(api, api.job(named), timeout_s)


@click.command
@_job
@with_api
def cancel(api: Api, named: str) -> int:
    """Cancel a job: one that waits never runs, one that runs is stopped."""
    job = api.job(named).cancel()
    if api.as_json:
        say_json(job.document)
    else:
        talk(f"{job.status}: {failure(job.document)}" if job.done else f"{job.status}: it is going to be stopped")
    return Exit.DONE


@click.command("list")
@click.option("--status", type=click.Choice(["queued", "running", "succeeded", "failed"]), help="Only such jobs.")
@click.option("--task", shell_complete=task_names, help="Only jobs of this task.")
@click.option(
    "--limit", type=click.IntRange(1, sys.maxsize), default=USUAL_MOST, show_default=True, help="How many at most."
)
@click.option("--all", "all_of_them", is_flag=True, help="All there are.")
@with_api
def list_jobs(api: Api, status: str | None, task: str | None, limit: int, all_of_them: bool) -> int:
    """List jobs, newest first, without their results. With --json each line is a JSON document."""
    screen = output()
    jobs = api.client.jobs(status=status, task=task)
    shown = 0
    for job in itertools.islice(jobs, None if all_of_them else limit):
        if api.as_json:
            say_json(job.document)
        else:
            say(*([screen.fitted(LIST_HEAD)] if shown == 0 else []), screen.fitted(list_line(job.document)))
        shown += 1
    if shown == limit and not all_of_them and next(iter(jobs), None) is not None:
        talk(f"aj: there are more than {limit}; --limit and --all show them")
    return Exit.DONE


@click.command
@_job
@with_api
def deliveries(api: Api, named: str) -> int:
    """Show each attempt to bring a job's webhook."""
    attempts = api.job(named).deliveries()
    if api.as_json:
        say_json(attempts)
    elif attempts:
        screen = output()
        say(*(screen.fitted(each) for each in (ATTEMPTS_HEAD, *map(attempt_line, attempts))))
    else:
        talk("aj: no attempt yet")
    return Exit.DONE


@click.command
@_job
@with_api
def redeliver(api: Api, named: str) -> int:
    """Send a job's webhook again, with the same webhook-id and bytes."""
    job = api.job(named)
    job.redeliver()
    if api.as_json:
        say_json(job.refresh().document)
    else:
        talk("aj: it is sent again; aj deliveries shows how that went")
    return Exit.DONE


def _show(api: Api, job: Job) -> None:
    if api.as_json:
        say_json(job.document)
        return
    screen = output()
    for each in job_lines(job.document):
        name, value = each[:12], each[12:]
        is_status = name.rstrip() == "status" and value in COLOURS
        say(name + screen.painted(value, COLOURS[value]) if is_status else each)
