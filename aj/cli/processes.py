"""`aj up`, `aj demo`, `aj worker`: this process becomes the one that `python -m` would start, with all its rules.

So that modules in the working folder are found, as with `python -m`, and no code of the command line stays in memory.
"""

from __future__ import annotations

import importlib.util
import os
import sys

import click

# What the extra `server` brings, by the names under which it is imported.
SERVER = ("flask", "gunicorn", "hiredis", "http_sf", "pydantic", "redis", "rq", "urllib3")


@click.command
def up() -> None:
    """Start the API, a worker, the receiver and a store of their own, and stay.

    The same as ./run up in a clone. Settings come from the environment.
    """
    become("aj.local", "up")


@click.command
def demo() -> None:
    """Play one job from its submission to its webhook, and stop.

    The same as ./run demo in a clone.
    """
    become("aj.local", "demo")


@click.command
@click.option("--only", type=click.Choice(["jobs", "deliveries"]), help="Do one of the two.")
def worker(only: str | None) -> None:
    """Run jobs and deliver webhooks.

    The same as python -m aj.worker. Settings come from the environment.
    """
    become("aj.worker", *(["--only", only] if only else []))


def become(module: str, *arguments: str) -> None:
    """Turns this process into `python -m module`.

    Raises: click.ClickException: the extra `server` is not installed.
    """
    if [name for name in SERVER if importlib.util.find_spec(name) is None]:
        raise click.ClickException("this needs more than a client does: pip install 'flask-aj[server]'")
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # noqa: S606 - the Python that runs us
