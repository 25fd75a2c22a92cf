"""What a worker and its work-horse say to each other: an order, and what became of it. Values only.

Both count the orders that a work-horse was given: the number of its run goes with all that it says of one.
Whatever is no such message is a ValueError when it is unpacked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aj.job import ErrorType, Outcome, Status, to_json

ORDER, PROGRESS, ENDED = b"o", b"p", b"e"


@dataclass(frozen=True, slots=True)
class Order:
    """A job that is to be run. `params` are in their JSON form."""

    job_id: str
    task: str
    params: dict[str, Any]
    attempt: int
    traceparent: str | None
    timeout_s: int

    def packed(self) -> bytes:
        names = ("job_id", "task", "params", "attempt", "traceparent", "timeout_s")
        return to_json({name: getattr(self, name) for name in names})  # `asdict` copies, ten times as slowly

    @classmethod
    def unpacked(cls, text: bytes) -> Order:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, in JSON."""

    run: int
    body: bytes

    def packed(self) -> bytes:
        return b"%d\n" % self.run + self.body

    @classmethod
    def unpacked(cls, text: bytes) -> Progress:
        run, _, body = text.partition(b"\n")
        return cls(int(run), _checked(body))


@dataclass(frozen=True, slots=True)
class Report:
    """How a run ended, and whether the work-horse can be used again."""

    run: int
    outcome: Outcome
    is_fit: bool

    def packed(self) -> bytes:
        outcome = self.outcome
        return f"{self.run} {self.is_fit:d} {outcome.status} {outcome.kind or ''}\n".encode() + outcome.body

    @classmethod
    def unpacked(cls, text: bytes) -> Report:
        head, _, body = text.partition(b"\n")
        run, is_fit, status, kind = head.decode().split(" ")
        outcome = Outcome(Status(status), _checked(body), ErrorType(kind) if kind else None)
        return cls(int(run), outcome, is_fit == "1")


def _checked(body: bytes) -> bytes:
    """`body`, which is JSON: a task can write to every file of its process, the line to the worker too."""
    try:
        json.loads(body.decode())
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return body
