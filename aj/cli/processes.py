"""`aj up`, `aj demo`, `aj worker`: this process becomes the one that `python -m` would start, with all its rules.

So that modules in the working folder are found, as with `python -m`, and no code of the command line stays in memory.
"""

from __future__ import annotations

import os
import sys

import click


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
    """Turns this process into `python -m module`, which says itself what it lacks."""
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # noqa: S606 - the Python that runs us
