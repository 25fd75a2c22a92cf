"""How a job, a list of jobs and the attempts of a webhook look to a person. Pure: documents in, lines out.

Documents come from a server that may be newer than we are, or another one: what is absent or of another type is left
out, and what is text is made harmless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aj.cli.text import columns, cut, duration, json_text, plain

COLOURS = {"succeeded": "green", "failed": "red", "running": "yellow"}
BAR_MOST, BAR_LEAST = 30, 6
TIMES = (("created", "created_at"), ("started", "started_at"), ("ended", "ended_at"), ("kept until", "expires_at"))


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of a job while somebody waits for it. `fraction` is 0 to 1, `eta_s` in seconds from then."""

    status: str = ""
    position: int | None = None
    eta_s: float | None = None
    fraction: float | None = None
    message: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> View:
        progress = document.get("progress")
        told = progress if isinstance(progress, Mapping) else {}
        fraction = _number(told.get("fraction"))
        message = told.get("message")
        return cls(
            status=_text(document.get("status")),
            position=int(_number(document.get("position")) or 0) or None,
            eta_s=_number(document.get("eta_s")),
            fraction=None if fraction is None else min(1.0, max(0.0, fraction)),
            message=_text(message) if message else "",
        )


def line(view: View) -> str:
    """One line that says how it stands, such as `running, 50 %, half of it, about 12 s left`."""
    position = "" if view.position is None else f"position {view.position}"
    percent = "" if view.fraction is None else _percent(view.fraction)
    return _joined(view.status, position, percent, view.message, _left(view, 0.0))


def live_line(view: View, waited_s: float, seen_s: float, width: int) -> str:
    """The line of a terminal that is drawn again and again, in at most `width` columns.

    `waited_s` is how long somebody has waited, `seen_s` how long ago the job was seen so.
    """
    ends = (_left(view, seen_s), duration(waited_s))
    if view.fraction is None:
        position = "" if view.position is None else f"position {view.position}"
        return cut(_joined(view.status or "asking", position, view.message, *ends), width)
    percent = _percent(view.fraction)
    # What is short of room gives way in this order: the bar shrinks, the message is cut, the bar goes.
    space = width - columns(_joined(percent, *ends)) - BAR_LEAST - 5
    words = _joined(percent, cut(view.message, max(0, space)), *ends)
    room = min(BAR_MOST, width - columns(words) - 3)
    if room < BAR_LEAST:
        return cut(words, width)
    done = int(room * view.fraction)
    return f"[{'#' * done}{'-' * (room - done)}] {words}"


def job_lines(document: Mapping[str, Any]) -> list[str]:
    """Everything that is known of a job, a line each."""
    view = View.of(document)
    rows = [("job", _text(document.get("job_id"))), ("status", view.status), ("task", _text(document.get("task")))]
    rows += [(name, _text(document.get(member))) for name, member in TIMES]
    attempt = _number(document.get("attempt"))
    rows.append(("attempt", f"{attempt:g}" if attempt and attempt > 1 else ""))
    if view.fraction is not None:
        rows.append(("progress", _joined(_percent(view.fraction), view.message)))
    rows.append(("position", "" if view.position is None else str(view.position)))
    rows.append(("estimate", _left(view, 0.0)))
    if "metadata" in document:
        rows.append(("metadata", json_text(document["metadata"])))
    rows.append(("webhook", _callback(document.get("callback"))))
    if view.status == "succeeded":
        rows.append(("result", json_text(document.get("result"))))
    if view.status == "failed":
        rows.append(("error", failure(document)))
    return [f"{name:<10}  {value}" for name, value in rows if value]


def failure(document: Mapping[str, Any]) -> str:
    """Why a job failed, on one line."""
    error = document.get("error")
    if not isinstance(error, Mapping):
        return "the server does not say why"
    kind, title, detail = (_text(error.get(name)) for name in ("type", "title", "detail"))
    return ": ".join(part for part in (kind, detail or title) if part)


LIST_HEAD = f"{'job':<36}  {'status':<9}  {'created':<24}  task"


def list_line(document: Mapping[str, Any]) -> str:
    """One job of a list."""
    job_id, status, created, task = (_text(document.get(each)) for each in ("job_id", "status", "created_at", "task"))
    return f"{job_id:<36}  {status:<9}  {created:<24}  {task}".rstrip()


ATTEMPTS_HEAD = f"{'at':<24}  {'took':>8}  answer"


def attempt_line(attempt: Any) -> str:
    """One attempt to bring a webhook."""
    if not isinstance(attempt, Mapping):
        return _text(attempt)
    took = _number(attempt.get("duration_s"))
    shown = "" if took is None else f"{took:.3f} s"
    return f"{_text(attempt.get('at')):<24}  {shown:>8}  {_text(attempt.get('status'))}".rstrip()


def _callback(callback: Any) -> str:
    if not isinstance(callback, Mapping):
        return ""
    state, attempts = _text(callback.get("state")), _number(callback.get("attempts")) or 0
    last, next_at = callback.get("last_status"), callback.get("next_attempt_at")
    return _joined(
        state,
        f"{attempts:g} attempt{'' if attempts == 1 else 's'}",
        "" if last is None else f"last answer {_text(last)}",
        "" if next_at is None else f"next at {_text(next_at)}",
    )


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _left(view: View, seen_s: float) -> str:
    return "" if view.eta_s is None else f"about {duration(max(1.0, view.eta_s - seen_s))} left"


def _percent(fraction: float) -> str:
    """Whole percents, cut off: what is not done is never 100 %."""
    return f"{int(fraction * 100 + 1e-9)} %"  # 0.29 * 100 is a little less than 29


def _number(value: Any) -> float | None:
    """`value` where it is a number that can be counted with."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
        return None
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    return plain(value) if isinstance(value, str) else json_text(value)
