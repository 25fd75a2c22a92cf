"""Tasks for the tutorial, beside the default ones."""

from __future__ import annotations

from aj import TaskError, task


@task
def always_fails() -> None:
    raise TaskError("nothing to be done")
