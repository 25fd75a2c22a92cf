"""What a worker runs, and inside what: its tasks, and the context of the Flask app that `AJ_TASK_APP` names.

Of that app one thing is asked, its `app_context`: the worker knows no framework. An app is made for a web server,
which leaves more to it than a worker can. What it does to this process when it is imported is put right here.
"""

from __future__ import annotations

import importlib
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

from aj.errors import SettingsError
from aj.registry import Registry
from aj.settings import Settings

Surroundings = Callable[[], AbstractContextManager[object]]

# A worker lives by these. Handlers of the app for other signals stay.
OUR_SIGNALS = (signal.SIGALRM, signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
OUR_LOGGERS = ("aj.", "rq.")
LONGEST_REASON = 300


def load_tasks(settings: Settings) -> tuple[Registry, Surroundings]:
    """Imports the app and the modules of tasks.

    The app comes first, as in its web process: modules that import each other may load in that order only.

    Raises: SettingsError: the app, or a module, is not there or not what it should be.
    """
    with _undisturbed():
        surroundings = nullcontext if settings.task_app is None else _app_context(settings.task_app)
        return Registry.load(settings.tasks), surroundings


def inside(surroundings: Surroundings, call: Callable[[], Any]) -> Callable[[], Any]:
    """`call` with `surroundings` around it, new ones for each run. Its error passes through them, an exit too."""

    def call_inside() -> Any:
        with surroundings():
            return call()
        raise RuntimeError("the app's context swallowed the error of the task")

    return call_inside


def _app_context(task_app: str) -> Surroundings:
    module, _, name = task_app.partition(":")
    try:
        app = getattr(importlib.import_module(module), name.removesuffix("()"))
        if name.endswith("()"):
            app = app()
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]
        again = f"import {module}; {module}.{name}"
        raise SettingsError(
            f"AJ_TASK_APP is {task_app!r}, which cannot be loaded ({reason}); python -c '{again}' shows where"
        ) from error
    context = getattr(app, "app_context", None)
    if not callable(context):
        hint = f"; is it {module}:{name}() that makes one?" if callable(app) and not name.endswith("()") else ""
        raise SettingsError(f"AJ_TASK_APP is {task_app!r}, of type {type(app).__name__} and no Flask app{hint}")
    return cast(Surroundings, context)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Puts signals and loggers of ours back after an import.

    Whoever ignores SIGCHLD takes the ends of its work-horses from the worker, and `logging.config` disables every
    logger that it does not name: what went wrong in a task would stand nowhere.
    """
    handlers = {each: signal.getsignal(each) for each in OUR_SIGNALS}
    try:
        yield
    finally:
        for each, handler in handlers.items():
            if handler is not None and signal.getsignal(each) != handler:
                signal.signal(each, handler)
        for name, logger in logging.root.manager.loggerDict.items():
            if name.startswith(OUR_LOGGERS) and isinstance(logger, logging.Logger):
                logger.disabled = False
