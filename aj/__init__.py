"""`aj`: the whole contract of an asynchronous HTTP API, for Flask and RQ.

The names here are the public ones. Each is loaded when it is first asked for, so that nobody waits for Flask who
only wants a task, nor for pydantic who only wants a clock.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aj import extras

if TYPE_CHECKING:
    from aj.app import create_app
    from aj.blueprint import JobsBlueprint
    from aj.errors import TaskError
    from aj.progress import report_progress
    from aj.registry import task
    from aj.version import __version__

__all__ = ["JobsBlueprint", "TaskError", "__version__", "create_app", "report_progress", "task"]

_HOMES = {
    "JobsBlueprint": "aj.blueprint",
    "TaskError": "aj.errors",
    "__version__": "aj.version",
    "create_app": "aj.app",
    "report_progress": "aj.progress",
    "task": "aj.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if not extras.is_of_server(error.name):
            raise
        raise ImportError(extras.hint(f"aj.{name}", f"{error.name}"), name=error.name) from None
