"""Tasks that need an app around them."""

from __future__ import annotations

import threading
from typing import Annotated

from flask import current_app, g
from pydantic import AfterValidator

from aj import task
from tests.support import host_web


def _asked_inside(name: str) -> str:
    """A parameter's own check, which the app that is around a request is around in the worker, too."""
    assert current_app
    return name


@task
def read_config(name: Annotated[str, AfterValidator(_asked_inside)]) -> str:
    """What the app was told; `g` is empty at the start of each job."""
    assert "seen" not in g
    g.seen = True
    return str(current_app.config[name])


@task
def break_off() -> None:
    raise ValueError(f"broken in {current_app.name}, which {host_web.__name__} made")


@task(timeout_s=1)
def run_on() -> None:
    while current_app:
        threading.Event().wait(0.05)
