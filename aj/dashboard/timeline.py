"""What happened to a job, and to its webhook, in order. Values in, values out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aj import clock
from aj.dashboard.words import parsed, took
from aj.job import Job, Status
from aj.store import Details

NO_ANSWERS = {
    "timeout": "no answer in time",
    "dns": "its name was not found",
    "connect": "no connection",
    "tls": "no trust in its certificate",
    "protocol": "an answer that is not HTTP",
    "address-refused": "its address may not be called",
    "not-sent": "it was not sent",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, or will. `kind` says how it looks: a status, `webhook-ok`, `webhook-bad`, `ahead`."""

    at_ms: int
    kind: str
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt to bring a webhook: its number from 1, and what it brought, in words."""

    number: int
    at_ms: int
    took_ms: float
    answer: str
    is_good: bool


def timeline(job: Job, details: Details, now_ms: int, due_ms: int | None = None) -> list[Event]:
    """The oldest first. `due_ms` is when the delay before the next attempt is over."""
    events = [Event(job.created_ms, "queued", "Submitted", f"to {details.queue}" if details.queue else "")]
    if details.queued_ms is not None:
        events.append(Event(details.queued_ms, "queued", "Queued again", "for another attempt"))
    if due_ms is not None:
        events.append(Event(due_ms, "ahead", "Next attempt is due", f"attempt {job.attempt + 1}"))
    if job.started_ms is not None:
        waited = took(job.started_ms - (details.queued_ms or job.created_ms))
        events.append(
            Event(job.started_ms, "running", f"Attempt {job.attempt or 1} started", f"after {waited} of waiting")
        )
    if job.ended_ms is not None:
        ran = "" if job.started_ms is None else f"after {took(job.ended_ms - job.started_ms)}"
        title, text = ("Succeeded", ran) if job.status is Status.SUCCEEDED else ("Failed", _why(job, ran))
        events.append(Event(job.ended_ms, str(job.status), title, text))
    for each in tried(details.attempts):
        kind, text = "webhook-ok" if each.is_good else "webhook-bad", f"{each.answer}, after {took(each.took_ms)}"
        events.append(Event(each.at_ms, kind, f"Webhook attempt {each.number}", text))
    if job.callback is not None and job.callback.next_attempt_ms is not None:
        is_over = job.callback.next_attempt_ms <= now_ms
        text = "on its way" if is_over else f"attempt {job.callback.attempts + 1}"
        events.append(Event(job.callback.next_attempt_ms, "ahead", "Webhook is due", text))
    if job.expires_ms is not None:
        events.append(Event(job.expires_ms, "ahead", "Expires"))
    return sorted(events, key=lambda each: each.at_ms)


def tried(log: Sequence[dict[str, Any]]) -> list[Tried]:
    """The attempts of which a log tells; what cannot be read is passed over."""
    found = []
    for number, attempt in enumerate(log, 1):
        status, error = attempt.get("status"), str(attempt.get("error"))
        answer = f"HTTP {status}" if isinstance(status, int) else NO_ANSWERS.get(error, error)
        is_good = isinstance(status, int) and 200 <= status < 300
        with contextlib.suppress(KeyError, TypeError, ValueError, OverflowError):
            at_ms, took_ms = clock.from_rfc3339(attempt["at"]), float(attempt["duration_s"]) * 1000
            if 0 <= at_ms <= clock.LAST_MS and 0 <= took_ms <= clock.LAST_MS:
                found.append(Tried(number, at_ms, took_ms, answer, is_good))
    return found


def _why(job: Job, ran: str) -> str:
    error = parsed(job.outcome)
    return ", ".join(filter(None, (str(error.get("type", "")), ran)))
