"""Execute: a task's function runs once and leaves an outcome. Knows no queue and no store.

Every way to end becomes one `Outcome`. What a caller may read of a failure is decided here: the name of the
exception's class, and its text only where the task meant it for the caller (`TaskError`).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aj.clock import monotonic_s
from aj.errors import AjError, TaskError
from aj.job import ErrorType, Outcome, to_json
from aj.progress import reporting_to
from aj.registry import Registry, Task

log = logging.getLogger("aj.execute")
LONGEST_DETAIL = 2000
# Well below what any version of Python can write, and what readers elsewhere take, of which some give up at 512.
DEEPEST_RESULT = 400
OLDER = "Was it changed after the worker had started? A worker reads its tasks once, and has to be restarted then."
_NO_JSON_TYPE = re.compile(r"Object of type (.{1,100}) is not JSON serializable")


class TimedOut(BaseException):
    """The task's time is over. Not an `Exception`, so that a task that catches those does not swallow it."""


class Refused(AjError):
    """The job cannot be run, or its return value not be kept; carries the outcome that says so."""

    def __init__(self, kind: ErrorType, detail: str) -> None:
        super().__init__(detail)
        self.outcome = Outcome.failed(kind, detail)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may take: seconds, and bytes of the result's JSON."""

    timeout_s: int
    max_result_bytes: int


def prepare(registry: Registry, name: str | None, params: Mapping[str, Any]) -> Callable[[], Any]:
    """The call that a job asks for. Raises: Refused: no such task here, or the parameters do not fit it any more."""
    task: Task | None = registry.get(name) if name is not None else None
    if task is None:
        raise Refused(ErrorType.TASK_UNAVAILABLE, f"No task named {name!r} is known to the worker. {OLDER}")
    try:
        arguments = task.arguments(params)
    except ValueError:
        detail = f"The parameters do not fit the worker's version of the task {name!r}. {OLDER}"
        raise Refused(ErrorType.TASK_UNAVAILABLE, detail) from None
    return lambda: task.function(**arguments)


def execute(
    call: Callable[[], Any], limits: Limits, deadline_s: float, send_progress: Callable[[bytes], None], label: str
) -> Outcome:
    """Runs `call` and says how it ended; never raises but for a `TimedOut` that strikes after the call's end.

    `deadline_s` is on the monotonic clock. The caller arms the alarm that raises `TimedOut` in here then. An end
    that comes later, because the task held the alarm off, is `timed-out` as well. `label` tells the log whose end
    it is.
    """
    try:
        with reporting_to(send_progress):
            result = call()
        if monotonic_s() >= deadline_s:
            raise TimedOut
        return Outcome.succeeded(_encoded(result, limits.max_result_bytes))
    except BaseException as error:
        log.error("%s: the task failed", label, exc_info=error)
        if monotonic_s() >= deadline_s:
            return Outcome.timed_out(limits.timeout_s)
        return failure(error, limits.timeout_s)


def failure(error: BaseException, timeout_s: float) -> Outcome:
    """The outcome of a task that ended with `error`."""
    if isinstance(error, TimedOut):
        return Outcome.timed_out(timeout_s)
    if isinstance(error, Refused):
        return error.outcome
    detail = _public_text(error) if isinstance(error, TaskError) else type(error).__name__
    # The text may hold what JSON in UTF-8 cannot, and a class may be named anything.
    return Outcome.failed(ErrorType.TASK_FAILED, detail[:LONGEST_DETAIL].encode("utf-8", "replace").decode("utf-8"))


def _public_text(error: TaskError) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # a class of the task's own may have a text that breaks
        return type(error).__name__


def _encoded(result: Any, max_result_bytes: int) -> bytes:
    try:
        body = to_json(result)
    except (ValueError, TypeError, RecursionError) as error:
        detail = f"The return value cannot be written as JSON ({_why_no_json(error)})."
        raise Refused(ErrorType.RESULT_INVALID, detail) from error
    trouble = _trouble_in(result)
    if trouble is not None:
        raise Refused(ErrorType.RESULT_INVALID, f"The return value {trouble}.")
    if len(body) > max_result_bytes:
        raise Refused(
            ErrorType.RESULT_TOO_LARGE, f"The result is {len(body)} bytes of JSON; the limit is {max_result_bytes}."
        )
    return body


def _why_no_json(error: Exception) -> str:
    """The class of the error, and of the value that it is about; nothing of the value itself."""
    kind = _NO_JSON_TYPE.fullmatch(str(error)) if type(error) is TypeError else None
    word = type(error).__name__
    return (
        word if kind is None else f"{word}: {kind[1]} has no form in JSON, so the task has to give it one, such as text"
    )


def _trouble_in(result: Any) -> str | None:
    """What makes a value that JSON can hold no good result. It keeps a list, since recursion has an end of its own."""
    waiting = [(result, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping):
            if _has_colliding_names(value):
                return "has two members that JSON would give one name"
            inner: Iterable[Any] = value.values()
        elif isinstance(value, list | tuple):
            inner = value
        else:
            continue
        if depth > DEEPEST_RESULT:
            return f"is nested deeper than {DEEPEST_RESULT}"
        waiting += [(each, depth + 1) for each in inner if isinstance(each, Mapping | list | tuple)]
    return None


def _has_colliding_names(value: Mapping[Any, Any]) -> bool:
    """Whether it is an object such as `{1: …, "1": …}`: JSON would have the same name twice in it."""
    if all(isinstance(name, str) for name in value):
        return False
    names = [name if isinstance(name, str) else json.dumps(name) for name in value]
    return len(set(names)) < len(names)
