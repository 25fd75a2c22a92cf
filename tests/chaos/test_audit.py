"""The auditor itself: it finds nothing in sound evidence, and names the rule when one thing is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.audit import audit
from tests.chaos.evidence import Books, Evidence, Runs, Told

ONE, TWO, LOST = "job-1", "job-2", "job-3"
HORSE = 77


def _promise(ordinal: int, job_id: str, task: str, callback: str | None) -> dict[str, Any]:
    return {"ordinal": ordinal, "job_id": job_id, "task": task, "callback": callback, "replayed": False}


def _told(document: dict[str, Any]) -> Told:
    body = json.dumps({"type": f"job.{document['status']}", **document})
    return Told(["msg"] * 2, [body] * 2, ["valid"] * 2, [str(document["status"])] * 2)


def _documents() -> dict[str, dict[str, Any]]:
    delivered = {"callback": {"state": "delivered"}}
    return {
        ONE: {"job_id": ONE, "status": "succeeded", "attempt": 1, "result": 1, **delivered},
        TWO: {"job_id": TWO, "status": "succeeded", "attempt": 2, "result": 2},
        LOST: {"job_id": LOST, "status": "failed", "attempt": 1, "error": {"type": "lost"}, **delivered},
    }


@pytest.fixture
def sound() -> Evidence:
    """Three jobs: one that succeeded, one that ran twice since it may, one whose work-horse was killed."""
    documents = _documents()
    return Evidence(
        promises=[
            _promise(1, ONE, "quick", "http://hook"),
            _promise(2, TWO, "flaky", None),
            _promise(3, LOST, "slow", "http://hook"),
        ],
        ended=[{"job_id": ONE, "document": documents[ONE]}],
        wrong=[],
        runs={1: Runs([11], 1), 2: Runs([12, 13], 1), 3: Runs([HORSE])},
        told={job_id: _told(documents[job_id]) for job_id in (ONE, LOST)},
        torn_receipts=0,
        answers={job_id: (200, document) for job_id, document in documents.items()},
        books=Books(
            jobs={ONE, TWO, LOST},
            leaked=[],
            finished={ONE, TWO},
            failed={LOST},
            rq_status={ONE: "finished", TWO: "finished", LOST: "failed"},
            under_way=[],
        ),
        dead_horses={HORSE},
        orphans=[],
    )


def test_sound_evidence_has_no_violation(sound: Evidence) -> None:
    """What is allowed is not blamed: a second run with retries, a loss that a kill explains, repeated webhooks."""
    assert audit(sound) == []


def _with_answer(evidence: Evidence, job_id: str, status: int = 200, **changes: Any) -> Evidence:
    document = {**evidence.answers[job_id][1], **changes}
    return replace(evidence, answers={**evidence.answers, job_id: (status, document)})


def _with_told(evidence: Evidence, **changes: Any) -> Evidence:
    return replace(evidence, told={**evidence.told, ONE: replace(evidence.told[ONE], **changes)})


def _with_runs(evidence: Evidence, ordinal: int, runs: Runs) -> Evidence:
    return replace(evidence, runs={**evidence.runs, ordinal: runs})


def _with_books(evidence: Evidence, **changes: Any) -> Evidence:
    return replace(evidence, books=replace(evidence.books, **changes))


FAULTS: dict[str, Callable[[Evidence], Evidence]] = {
    "one key has one job": lambda e: replace(e, promises=[*e.promises, _promise(1, TWO, "quick", None)]),
    "one job has one key": lambda e: replace(e, promises=[*e.promises, _promise(4, TWO, "flaky", None)]),
    "every 202 has a job and every job a 202": lambda e: _with_books(e, jobs={ONE, TWO}),
    "every job has a final status": lambda e: _with_answer(e, TWO, 404),
    "a job runs as often as it may": lambda e: _with_runs(e, 1, Runs([11, 14], 1)),
    "a job never runs twice at a time": lambda e: _with_runs(e, 2, Runs([12, 13], 1, overlaps=1)),
    "what succeeded has run": lambda e: _with_runs(e, 1, Runs()),
    "what succeeded has its own result": lambda e: _with_answer(e, TWO, result=1),
    "what failed has run": lambda e: _with_answer(e, LOST, error={"type": "task-failed"}),
    "a job ends by itself or is lost": lambda e: _with_answer(e, LOST, error={"type": "timed-out"}),
    "nothing is lost that was not killed": lambda e: replace(e, dead_horses=set()),
    "every promised webhook arrives": lambda e: replace(e, told={LOST: e.told[LOST]}),
    "every webhook that arrived is known to have": lambda e: _with_answer(e, ONE, callback={"state": "exhausted"}),
    "every attempt has the same id and bytes": lambda e: _with_told(e, ids=["msg", "other"]),
    "every signature is valid": lambda e: _with_told(e, signatures=["valid", "none"]),
    "a webhook says what the job says": lambda e: _with_told(e, statuses=["failed"]),
    "no webhook that nobody asked for": lambda e: replace(e, told={**e.told, TWO: e.told[ONE]}),
    "every key has a time to live": lambda e: _with_books(e, leaked=["aj:job:1"]),
    "nothing is under way": lambda e: _with_books(e, under_way=["rq:wip:q"]),
    "RQ's books and ours agree": lambda e: _with_books(e, finished={ONE}),
    "clients see 202, 200 and 503 only": lambda e: replace(e, wrong=[{"about": ONE, "status": 500, "body": ""}]),
    "a final status never changes": lambda e: _with_answer(e, ONE, attempt=2),
    "every receipt is a whole line": lambda e: replace(e, torn_receipts=1),
    "a killed fleet leaves no process behind": lambda e: replace(e, orphans=[9]),
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_broken_promise_is_named(sound: Evidence, rule: str) -> None:
    """An auditor that finds nothing proves nothing unless it finds what is there."""
    assert rule in {violation.rule for violation in audit(FAULTS[rule](sound))}
