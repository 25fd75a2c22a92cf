"""The audit: from the evidence to violations, each with its rule, its job and what shows it. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.chaos.evidence import STATUS_IN_RQ, Document, Evidence, Runs, Told
from tests.chaos.tasks import RETRIES

RERUN = ("flaky", "steady")
RAISES = ("failing", "flaky")


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was not kept."""

    rule: str
    about: str
    shown_by: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about}: {self.shown_by}"


@dataclass(frozen=True, slots=True)
class Promised:
    """One job as its client knows it."""

    ordinal: int
    job_id: str
    task: str
    callback: str | None


def audit(evidence: Evidence) -> list[Violation]:
    """All violations."""
    found = [*_keys(evidence), *_books(evidence), *_loose_ends(evidence)]
    unexplained = 0
    for job in promised(evidence):
        status, document = evidence.answers[job.job_id]
        if status != 200 or document["status"] not in STATUS_IN_RQ:
            found.append(Violation("every job has a final status", job.job_id, f"{status} {document}"))
            continue
        runs = evidence.runs.get(job.ordinal, Runs())
        found += _runs(job, document, runs)
        found += _webhook(job, document, evidence.told.get(job.job_id, Told()))
        if _error_type(document) == "lost" and (not runs.starts or runs.starts[-1] not in evidence.dead_horses):
            unexplained += 1
            if runs.starts:
                found.append(Violation("nothing is lost that was not killed", job.job_id, f"{document} {runs}"))
    if unexplained > len(evidence.dead_horses):
        found.append(Violation("nothing is lost that was not killed", "the run", f"{unexplained} jobs"))
    return found


def promised(evidence: Evidence) -> list[Promised]:
    """Each job once, by the id of its first 202."""
    first = {note["ordinal"]: note for note in reversed(evidence.promises)}
    return [Promised(each, note["job_id"], note["task"], note["callback"]) for each, note in sorted(first.items())]


def _error_type(document: Document) -> str | None:
    return str(document["error"]["type"]) if "error" in document else None


def _keys(evidence: Evidence) -> Iterator[Violation]:
    """One key, one id; one id, one job; and no job that nobody was told of."""
    ids: dict[int, set[str]] = {}
    for note in evidence.promises:
        ids.setdefault(note["ordinal"], set()).add(note["job_id"])
    for ordinal, its_ids in ids.items():
        if len(its_ids) > 1:
            yield Violation("one key has one job", f"key {ordinal}", str(its_ids))
    for job_id, count in Counter(job_id for its_ids in ids.values() for job_id in its_ids).items():
        if count > 1:
            yield Violation("one job has one key", job_id, f"{count} keys")
    known = {job_id for its_ids in ids.values() for job_id in its_ids}
    for job_id in evidence.books.jobs ^ known:
        yield Violation("every 202 has a job and every job a 202", job_id, "in the store" * (job_id not in known))


def _runs(job: Promised, document: Document, runs: Runs) -> Iterator[Violation]:
    """At most once without retries, never two at a time, and an end that fits what ran."""
    kind, starts, shown = _error_type(document), len(runs.starts), f"{document} {runs}"
    most = document["attempt"] if job.task in RERUN else 1
    if starts > most or document["attempt"] > (1 + RETRIES if job.task in RERUN else 1):
        yield Violation("a job runs as often as it may", job.job_id, shown)
    if runs.overlaps:
        yield Violation("a job never runs twice at a time", job.job_id, shown)
    if kind is None and not (runs.ends and (runs.ends == 1 or job.task in RERUN)):
        yield Violation("what succeeded has run", job.job_id, shown)
    if kind is None and document["result"] != job.ordinal:
        yield Violation("what succeeded has its own result", job.job_id, shown)
    if kind == "task-failed" and not (starts and job.task in RAISES):
        yield Violation("what failed has run", job.job_id, shown)
    if kind not in (None, "task-failed", "lost"):
        yield Violation("a job ends by itself or is lost", job.job_id, shown)


def _webhook(job: Promised, document: Document, told: Told) -> Iterator[Violation]:
    """What was promised came, with one id, one body and valid signatures, and says what the job says."""
    shown = f"{document} {told}"
    if job.callback is None:
        if told.ids:
            yield Violation("no webhook that nobody asked for", job.job_id, shown)
        return
    if not told.ids:
        yield Violation("every promised webhook arrives", job.job_id, shown)
    if document.get("callback", {}).get("state") != "delivered":
        yield Violation("every webhook that arrived is known to have", job.job_id, shown)
    if len(set(told.ids)) > 1 or len(set(told.bodies)) > 1:
        yield Violation("every attempt has the same id and bytes", job.job_id, shown)
    if set(told.signatures) - {"valid"}:
        yield Violation("every signature is valid", job.job_id, shown)
    if set(told.statuses) - {document["status"]}:
        yield Violation("a webhook says what the job says", job.job_id, shown)
    for body in set(told.bodies):
        message = json.loads(body.encode("latin-1"))
        if any(message.get(name) != document.get(name) for name in ("result", "error", "ended_at", "attempt")):
            yield Violation("a webhook says what the job says", job.job_id, shown)


def _books(evidence: Evidence) -> Iterator[Violation]:
    """RQ's registries and our hashes agree, and nothing is under way or stays for ever."""
    books = evidence.books
    for key in books.leaked:
        yield Violation("every key has a time to live", key, "none")
    for key in books.under_way:
        yield Violation("nothing is under way", key, "is there")
    for job_id, (status, document) in evidence.answers.items():
        ours = document.get("status", status)
        registry = {"succeeded": books.finished, "failed": books.failed}.get(ours, set())
        in_both = job_id in books.finished and job_id in books.failed
        if books.rq_status[job_id] != STATUS_IN_RQ.get(ours) or job_id not in registry or in_both:
            shown = f"ours {ours}, RQ's {books.rq_status[job_id]}, in its registry: {job_id in registry}"
            yield Violation("RQ's books and ours agree", job_id, shown)


def _loose_ends(evidence: Evidence) -> Iterator[Violation]:
    """What clients and receivers should not have seen, and processes that should have ended."""
    for note in evidence.wrong:
        yield Violation("clients see 202, 200 and 503 only", note["about"], f"{note['status']} {note['body']}")
    for note in evidence.ended:
        if _final(note["document"]) != _final(evidence.answers[note["job_id"]][1]):
            shown = f"{note['document']} became {evidence.answers[note['job_id']]}"
            yield Violation("a final status never changes", note["job_id"], shown)
    for job_id in evidence.told.keys() - evidence.answers.keys():
        yield Violation("no webhook that nobody asked for", job_id, str(evidence.told[job_id]))
    if evidence.torn_receipts:
        yield Violation("every receipt is a whole line", "hook.log", f"{evidence.torn_receipts} lines")
    for pid in evidence.orphans:
        yield Violation("a killed fleet leaves no process behind", f"process {pid}", "lives")


def _final(document: Document) -> Document:
    """The part of a document that stays as it is once the job has ended; deliveries go on."""
    return {name: value for name, value in document.items() if name != "callback"}
