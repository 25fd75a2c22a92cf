"""The jobs of the reference server: in memory, each in a thread, with switches for what can be wrong with them.

It is written for `aj check` to be tried on, by itself and not with code of `aj`, whose mistakes it would share.
"""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

QUEUED_S = 0.01
LARGE = 20_000
NOT_QUICK_S = 1.5
TASKS: dict[str, dict[str, type]] = {
    "square": {"n": int},
    "rest": {"seconds": float},
    "fail": {},
    "forget_soon": {},
}
LIFE_S = {"forget_soon": 0.2}
SHORT_LIFE_S = 1.0
FINAL = ("succeeded", "failed")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Record:
    """A job; `version` moves with each change of its document."""

    task: str
    parameters: dict[str, Any]
    callback: str | None = None
    trace: str | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "queued"
    outcome: dict[str, Any] = field(default_factory=dict)
    times: dict[str, str] = field(default_factory=lambda: {"created_at": now()})
    version: int = 0
    first: bool = False
    looks: int = 0  # at its end
    metadata: dict[str, Any] | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        metadata = {} if self.metadata is None else {"metadata": self.metadata}
        own = {"job_id": self.id, "status": self.status, "task": self.task}
        return {**own, **metadata, **self.times, **copy.copy(self.outcome)}


class Engine:
    """All jobs. `faults` are names of what is wrong; `tell` is called with each job that has ended."""

    def __init__(self, faults: frozenset[str], tell: Callable[[Record], None]) -> None:
        self.faults, self._tell = faults, tell
        self.changed = threading.Condition(threading.RLock())
        self.jobs: dict[str, Record] = {}
        self.gone: dict[str, tuple[str, str]] = {}

    def start(self, record: Record) -> Record:
        with self.changed:
            record.first = not self.jobs
            self.jobs[record.id] = record
        if record.task == "rest" and "nobody is slow" in self.faults:
            self._run(record)
        else:
            threading.Thread(target=self._run, args=(record,), daemon=True).start()
        return record

    def _move(self, record: Record, status: str, outcome: dict[str, Any] | None = None) -> bool:
        """Changes a job that has not ended; says whether it had not."""
        with self.changed:
            if record.status in FINAL:
                return False
            record.status, record.outcome = status, outcome or {}
            record.version += 1
            stamp = now()
            if status in FINAL:
                record.times.setdefault("started_at", stamp)
                record.times["ended_at"] = stamp
                if "kept for ever" not in self.faults:
                    record.times["expires_at"] = stamp
            elif status == "running":
                record.times.setdefault("started_at", stamp)
            self.changed.notify_all()
            return True

    def _run(self, record: Record) -> None:
        self._pause(record, QUEUED_S)
        self._move(record, "running", {"result": None} if "result too early" in self.faults else None)
        if record.task == "square" and "nobody is quick" in self.faults:
            self._pause(record, NOT_QUICK_S)
        if record.task == "rest" and "nobody is slow" not in self.faults:
            seconds = record.parameters["seconds"]
            self._pause(record, seconds / 2)
            if "status goes back" in self.faults:
                self._move(record, "queued")
            self._pause(record, seconds / 2)
        if "failing jobs never end" in self.faults and record.task == "fail":
            return
        status, outcome = self._outcome(record)
        if "webhook before the end" in self.faults and record.callback:
            self._tell(replace(record, status=status, outcome=outcome))
            self._pause(record, 0.2)
        self.end(record, status, outcome)

    def _pause(self, record: Record, seconds: float) -> None:
        with self.changed:
            self.changed.wait_for(lambda: record.status in FINAL, seconds)

    def _outcome(self, record: Record) -> tuple[str, dict[str, Any]]:
        if record.task == "fail":
            if "failed without error" in self.faults:
                return "failed", {}
            kind = "oops" if "error of another type" in self.faults else "task-failed"
            error = {"type": kind, "title": "The task failed", "detail": "ValueError"}
            if "result beside the error" in self.faults:
                return "failed", {"error": error, "result": None}
            return "failed", {"error": error}
        if "succeeded without result" in self.faults:
            return "succeeded", {}
        if record.task == "rest" and "slow job without result" in self.faults:
            return "succeeded", {}
        result = record.parameters["n"] ** 2 if record.task == "square" else "rested"
        return "succeeded", {"result": "x" * LARGE if "large results" in self.faults else result}

    def end(self, record: Record, status: str, outcome: dict[str, Any]) -> bool:
        """Ends a job; says whether it had not ended before."""
        if not self._move(record, status, outcome):
            return False
        if "webhook before the end" not in self.faults and record.callback:
            self._tell(record)
        life_s = SHORT_LIFE_S if "a short life" in self.faults else LIFE_S.get(record.task)
        if life_s and "kept for ever" not in self.faults:
            threading.Timer(life_s, self.forget, (record.id, "job-expired")).start()
        return True

    def cancel(self, record: Record) -> bool:
        """Whether the job is cancelled now."""
        error = {"type": "cancelled", "title": "The job was cancelled", "detail": "by its caller"}
        with self.changed:
            return self.end(record, "failed", {"error": error}) or record.outcome.get("error") == error

    def forget(self, job_id: str, slug: str) -> None:
        with self.changed:
            if self.jobs.pop(job_id, None):
                self.gone[job_id] = (slug, now())

    def wait(self, record: Record, seconds: float, version: int | None = None) -> None:
        """Until the job has ended, or has another version than this, or the time is over."""
        with self.changed:
            self.changed.wait_for(
                lambda: record.status in FINAL or (version is not None and record.version != version), seconds
            )
