"""All that the auditor judges by: what clients were promised, what ran, what receivers got, what is there now.

Reads files, asks the API and looks into the store; it judges nothing and changes nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
import requests

from hooksink.receipts import parse_line
from tests.chaos.notes import CLIENTS, RECEIVER, Note, read_notes
from tests.chaos.scene import PREFIX, QUEUE, RECEIPTS
from tests.chaos.tasks import RUNS
from tests.support.leaks import leaked_keys

Document = dict[str, Any]
STATUS_IN_RQ = {"succeeded": "finished", "failed": "failed"}


@dataclass(slots=True)
class Runs:
    """The traces of one job: pids of its starts, how many of them came to their end, how many overlapped."""

    starts: list[int] = field(default_factory=list)
    ends: int = 0
    overlaps: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What receivers were told of one job: ids, bodies and judgements of the signature, one entry per attempt."""

    ids: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Books:
    """What the store holds when everything is over."""

    jobs: set[str]
    leaked: list[str]
    finished: set[str]
    failed: set[str]
    rq_status: dict[str, str]
    under_way: list[str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`accepted` and `answers` are by job; `answers` gives the HTTP status of a GET and its document."""

    promises: list[Note]
    ended: list[Note]
    wrong: list[Note]
    runs: dict[int, Runs]
    told: dict[str, Told]
    torn_receipts: int
    answers: dict[str, tuple[int, Document]]
    books: Books
    dead_horses: set[int]
    orphans: list[int]


def gather(folder: Path, client: redis.Redis, api: str, dead_horses: set[int], orphans: list[int]) -> Evidence:
    promises = read_notes(folder / CLIENTS, "accepted")
    job_ids = {str(note["job_id"]) for note in promises}
    told, torn = _told(folder)
    return Evidence(
        promises=promises,
        ended=read_notes(folder / CLIENTS, "ended"),
        wrong=read_notes(folder / CLIENTS, "wrong"),
        runs=_runs(folder / RUNS),
        told=told,
        torn_receipts=torn,
        answers=_answers(api, job_ids),
        books=_books(client, job_ids),
        dead_horses=dead_horses,
        orphans=orphans,
    )


def _runs(path: Path) -> dict[int, Runs]:
    found: dict[int, Runs] = defaultdict(Runs)
    for line in path.read_text().splitlines() if path.exists() else []:
        word, ordinal, pid = line.split()
        runs = found[int(ordinal)]
        if word == "start":
            runs.starts.append(int(pid))
        elif word == "end":
            runs.ends += 1
        else:
            runs.overlaps += 1
    return found


def _told(folder: Path) -> tuple[dict[str, Told], int]:
    """What both receivers got, by job; and how many lines of hooksink's log are no whole receipt."""
    found: dict[str, Told] = defaultdict(Told)
    for note in read_notes(folder / RECEIVER, "webhook"):
        message = json.loads(note["body"].encode("latin-1"))
        told = found[message["job_id"]]
        told.ids.append(note["id"])
        told.bodies.append(note["body"])
        told.signatures.append(note["signature"])
        told.statuses.append(message["status"])
    torn, log = 0, folder / RECEIPTS
    for line in log.read_bytes().splitlines() if log.exists() else []:
        receipt = parse_line(line)
        if receipt is None:
            torn += 1
            continue
        told = found[receipt.job_id]
        told.ids.append(receipt.webhook_id)
        told.signatures.append(receipt.signature)
        told.statuses.append(receipt.status)
    return found, torn


def _answers(api: str, job_ids: Iterable[str]) -> dict[str, tuple[int, Document]]:
    found = {}
    with requests.Session() as session:
        for job_id in job_ids:
            answer = session.get(f"{api}/jobs/{job_id}", timeout=10)
            found[job_id] = answer.status_code, answer.json()
    return found


def _books(client: redis.Redis, job_ids: Iterable[str]) -> Books:
    store: Any = client
    keys = [key.decode() for key in store.scan_iter(count=1000)]
    indexes = {f"{PREFIX}:{name}" for name in ("active", "leases", "delayed", "out:hosts")}
    lists = {f"rq:queue:{QUEUE}", f"rq:queue:{QUEUE}:intermediate", f"rq:wip:{QUEUE}"}
    loose = (f"{PREFIX}:out:due:", "rq:execution")
    return Books(
        jobs={key.removeprefix(f"{PREFIX}:job:") for key in keys if key.startswith(f"{PREFIX}:job:")},
        leaked=leaked_keys(client, PREFIX),
        finished={each.decode() for each in store.zrange(f"rq:finished:{QUEUE}", 0, -1)},
        failed={each.decode() for each in store.zrange(f"rq:failed:{QUEUE}", 0, -1)},
        rq_status={job_id: (store.hget(f"rq:job:{job_id}", "status") or b"none").decode() for job_id in job_ids},
        under_way=sorted(key for key in keys if key in indexes | lists or key.startswith(loose)),
    )
