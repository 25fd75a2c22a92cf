"""How a running task says how far it is.

A context variable holds the way out while a task runs in a worker; elsewhere a report goes nowhere, so that
a task stays a plain function. Reports are rate-limited here, so that a tight loop costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aj.clock import monotonic_s
from aj.job import to_json

SHORTEST_INTERVAL_S = 0.25
LONGEST_MESSAGE = 200

_reporter: ContextVar[Callable[[float, str | None], None] | None] = ContextVar("aj_reporter", default=None)


def report_progress(fraction: float, message: str | None = None) -> None:
    """Tells the caller how far this job is.

    `fraction` is from 0 to 1; `message` is shown as it is, cut after 200 characters. Cheap: at most four
    reports a second are sent, and the last one. Does nothing outside a worker.

    Raises: ValueError: `fraction` is not between 0 and 1.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction is {fraction!r}; it must be from 0 to 1")
    report = _reporter.get()
    if report is not None:
        report(float(fraction), message)


@contextmanager
def reporting_to(send: Callable[[bytes], None]) -> Iterator[None]:
    """While this lasts, reports of the running task go to `send` as JSON; the last one always does, at the end.

    Threads of the task may report too, at once, and go on when it is over: those reports go nowhere.
    """
    last_s = float("-inf")
    held_back: bytes | None = None
    is_over = False

    def report(fraction: float, message: str | None) -> None:
        nonlocal last_s, held_back
        if is_over:
            return  # a thread that the task has left behind
        shown: dict[str, float | str] = {"fraction": fraction}
        if message is not None:
            shown["message"] = str(message)[:LONGEST_MESSAGE].encode("utf-8", "replace").decode("utf-8")
        progress, now_s = to_json(shown), monotonic_s()
        if now_s - last_s < SHORTEST_INTERVAL_S and fraction != 1:
            held_back = progress
            return
        last_s, held_back = now_s, None
        send(progress)

    token = _reporter.set(report)
    try:
        yield
    finally:
        _reporter.reset(token)
        is_over, last = True, held_back
        if last is not None:
            send(last)
