"""What a process of ours writes to its log: text or JSON, and which job a line is about.

Where a block is `about` a job, every line that is written in it is, whoever writes it. `docs/logs.md` has the fields.
Only the edge of a process that is ours may call `set_up`: in somebody else's app logging is the host's.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from aj.clock import rfc3339

log = logging.getLogger("aj.logs")

# What every record has; the rest is what the caller gave as `extra=`.
_EVERY_RECORDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encode = json.JSONEncoder(allow_nan=False).encode
# In what it gives: an escaped backslash or a whole pair of surrogates, which stay, or half a pair.
_SURROGATES = re.compile(r"(\\\\|\\ud[89ab]..\\ud[c-f]..)|\\ud[89a-f]..")

_about: ContextVar[dict[str, Any]] = ContextVar("aj_about")
_about_in_every_thread: dict[str, Any] = {}


def of_job(
    job_id: str, task: str | None = None, attempt: int | None = None, traceparent: str | None = None
) -> dict[str, Any]:
    """The fields of a line about a job, also for `extra=`. What is not known is left out."""
    trace_id = None if traceparent is None else traceparent.split("-")[1]
    told = {"job_id": job_id, "task": task, "attempt": attempt, "traceparent": traceparent, "trace_id": trace_id}
    return {name: value for name, value in told.items() if value is not None}


@contextlib.contextmanager
def about(
    job_id: str, task: str | None = None, attempt: int | None = None, traceparent: str | None = None
) -> Iterator[None]:
    """What this thread writes within this block is about the job."""
    before = _about.set(of_job(job_id, task, attempt, traceparent))
    try:
        yield
    finally:
        _about.reset(before)


def about_in_every_thread() -> None:
    """What this thread's lines are about, all lines of this process are about: for one that runs one job at a time.

    Threads that a task starts know nothing of the block in which they were started.
    """
    _about_in_every_thread.clear()
    _about_in_every_thread.update(_about.get({}))


def _told() -> dict[str, Any]:
    return _about.get(_about_in_every_thread)


class TextFormatter(logging.Formatter):
    """Time, logger and message. A line that is about a job and does not name it is told so at its end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line, told = super().formatMessage(record), _told()
        if "job_id" not in told or told["job_id"] in record.message:
            return line
        trace = f", trace {told['trace_id']}" if "trace_id" in told else ""
        return f"{line} [job {told['job_id']}{trace}]"


class JsonFormatter(logging.Formatter):
    """One JSON object of ASCII per line, whatever the record holds. No `extra=` replaces a field of ours."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "at": rfc3339(int(record.created * 1000)),
            "level": record.levelname,
            "logger": record.name,
            "message": _first(record.getMessage, lambda: f"{record.msg!r} with {record.args!r}"),
            **_told(),
        }
        exc_info = record.exc_info
        if exc_info and exc_info[0] is not None:
            fields["exception"] = _first(lambda: self.formatException(exc_info))
        if record.stack_info:
            fields["stack"] = record.stack_info
        for name, value in vars(record).items():
            if name not in _EVERY_RECORDS:
                fields.setdefault(str(name), value)
        return _json(fields)


def _json(fields: Mapping[str, Any]) -> str:
    """The fields as JSON. What has none is its `repr`; half a pair of surrogates, which few can read, is U+FFFD."""
    try:
        text = _encode(fields)
    except Exception:  # there is an object of anybody's class
        text = _encode({name: _encodable(value) for name, value in fields.items()})
    return _SURROGATES.sub(lambda found: found[1] or r"\ufffd", text) if "\\ud" in text else text


def _encodable(value: Any) -> Any:
    try:
        _encode(value)
    except Exception:
        return _first(lambda: repr(value))
    return value


def _first(*makers: Callable[[], str]) -> str:
    """The first text that can be made: what is logged may be of a class whose text breaks."""
    for make in makers:
        with contextlib.suppress(Exception):
            return make()
    return "(cannot be shown)"


FORMATTERS: dict[str, Callable[[], logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


def set_up(form: str) -> None:
    """Has this process write its log to standard error, from INFO on, in the form that `AJ_LOG` names.

    Where it is JSON, warnings and what nobody caught are lines of it too.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATTERS[form]())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    if form == "json":
        logging.captureWarnings(True)
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_uncaught_in_thread


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("nobody caught an exception", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):  # which ends a thread in silence
        _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)
