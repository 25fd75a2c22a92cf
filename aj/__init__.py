"""`aj`: the whole contract of an asynchronous HTTP API, for Flask and RQ.

The names here are the public ones. Flask, Redis and RQ are loaded only when a name that needs them is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aj.errors import TaskError
from aj.progress import report_progress
from aj.registry import task
from aj.version import __version__

if TYPE_CHECKING:
    from aj.app import create_app
    from aj.blueprint import JobsBlueprint

__all__ = ["JobsBlueprint", "TaskError", "__version__", "create_app", "report_progress", "task"]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        from aj.app import create_app

        return create_app
    if name == "JobsBlueprint":
        from aj.blueprint import JobsBlueprint

        return JobsBlueprint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
