"""A small correct server of the contract, in memory, with a switch for each of many faults.

`aj check` has to find nothing wrong with it, and of each fault just the points that it breaks.
What it says is here, how it says it in `door`.
"""

from __future__ import annotations

import json
import threading
import uuid
from email.message import Message
from typing import Any, Protocol
from urllib.parse import parse_qs

from tests.check import strict
from tests.check.drift import drifted
from tests.check.engine import FINAL, Engine, Record
from tests.check.strict import Refused
from tests.check.telling import Teller

Answer = tuple[int, dict[str, str], Any]


class Request(Protocol):
    """What the server asks of a request."""

    headers: Message

    def body(self) -> bytes: ...

    def wait_s(self) -> int: ...


class Reference:
    """The server behind the handler: jobs, keys, and what is wrong."""

    def __init__(self, faults: frozenset[str]) -> None:
        self.faults = faults
        self.teller = Teller(faults)
        self.engine = Engine(faults, self.teller.tell)
        self.keys: dict[str, tuple[str, Record, Answer]] = {}
        self.underway: set[str] = set()
        self.seen_ended: set[str] = set()
        self.lock = threading.Lock()

    def has(self, fault: str) -> bool:
        return fault in self.faults

    # -- submissions -----------------------------------------------------------------------------------------

    def submit(self, request: Request) -> Answer:
        if self.has("500 for each submission"):
            raise Refused(500, "oh", {"Content-Type": "text/html"})
        body = request.body()
        keys = request.headers.get_all("Idempotency-Key") or []
        key = None if self.has("keys ignored") else strict.key(keys, self.faults)
        if key and self.has("one key for all"):
            key = "one"
        try:
            values = strict.members(body, self.faults)
            record = strict.checked(values, self.faults)
        except Refused:
            if key and self.has("refusals spend keys"):
                self.keys[key] = ("", Record("square", {}), (422, {}, None))
            raise
        record.trace = request.headers.get("traceparent")
        payload = body.decode() if self.has("bytes make the payload") else json.dumps(values, sort_keys=True)
        if key is None:
            return self._created(record, request)
        if self.has("race between look and write") or self.has("409 in a race"):
            return self._raced(key, payload, record, request)
        with self.lock:
            if key not in self.keys:
                answer = self._created(record, request)
                self.keys[key] = (payload, record, answer)
                if self.has("double entry"):
                    self.engine.start(Record(record.task, record.parameters))
                return answer
        return self._replayed(key, payload, record, request)

    def _raced(self, key: str, payload: str, record: Record, request: Request) -> Answer:
        if key in self.keys:
            return self._replayed(key, payload, record, request)
        if key in self.underway and self.has("409 in a race"):
            raise Refused(409, "underway")
        self.underway.add(key)
        threading.Event().wait(0.05)
        answer = self._created(record, request)
        self.keys[key] = (payload, record, answer)
        return answer

    def _replayed(self, key: str, payload: str, record: Record, request: Request) -> Answer:
        first_payload, first, (status, fields, document) = self.keys[key]
        if self.has("key freed with its job") and first.id in self.engine.gone:
            return self._created(record, request)
        if self.has("key freed at the end") and first.id in self.seen_ended:
            return self._created(record, request)
        if payload != first_payload and not self.has("another payload is replayed"):
            raise Refused(422, "the key was used for another payload")
        if self.has("replay without Location"):
            fields = {name: value for name, value in fields.items() if name != "Location"}
        if self.has("replay with the status of now") and first.id in self.seen_ended:
            document = {**document, "status": first.status}
        return status, fields if self.has("replay not marked") else {**fields, "Idempotent-Replayed": "true"}, document

    def _created(self, record: Record, request: Request) -> Answer:
        known = list(self.engine.jobs.values())
        if self.has("one id for two") and len(known) == 1:
            record.id = known[0].id
            self.engine.start(Record("square", {"n": 1}))
        else:
            self.engine.start(record)
        location = (
            f"http://elsewhere.invalid/jobs/{record.id}" if self.has("Location elsewhere") else f"/jobs/{record.id}"
        )
        fields = {"Location": location, "Retry-After": "1", "Cache-Control": "no-store"}
        if self.has("no Location"):
            del fields["Location"]
        if self.has("Retry-After 0 on 202"):
            fields["Retry-After"] = "0"
        if self.has("202 may be kept"):
            fields["Cache-Control"] = "max-age=60"
        waited = request.wait_s()
        if waited:
            self.engine.wait(record, waited)
        if waited and record.status in FINAL:
            prefer = {"Preference-Applied": f"wait={waited}", "Vary": "Prefer"}
            return 200, {**self._document_fields(record), "Location": location, **prefer}, record.document()
        document = {"job_id": record.id, "status": "accepted" if self.has("another word at the start") else "queued"}
        if self.has("more in the first answer"):
            document["task"] = record.task
        return 200 if self.has("200 instead of 202") else 202, fields, document

    # -- jobs ------------------------------------------------------------------------------------------------

    def find(self, job_id: str) -> Record:
        record = self.engine.jobs.get(job_id)
        if record:
            return record
        if job_id in self.engine.gone and not self.has("404 after its life"):
            slug, at = self.engine.gone[job_id]
            if not (slug == "job-deleted" and self.has("404 after DELETE")):
                raise Refused(410, "it is over", {}, {"expired_at": at})
        raise Refused(404, "no such job")

    def look(self, job_id: str, request: Request) -> Answer:
        self._stumble(job_id)
        if job_id not in self.engine.jobs and self._is_uuid(job_id) and self.has("ghost ids"):
            return (
                200,
                {"Retry-After": "1", "ETag": 'W/"0"', "Cache-Control": "no-cache"},
                {"job_id": job_id, "status": "queued"},
            )
        if job_id not in self.engine.jobs and request.wait_s() and self.has("unknown ids are waited for"):
            threading.Event().wait(request.wait_s())
        record = self.find(job_id)
        if record.first and self.has("not there at once"):
            record.first = False
            raise Refused(404, "not yet")
        waited, tag = request.wait_s(), request.headers.get("If-None-Match")
        seen = record.version if tag and self._matches(tag, record) else None
        if waited:
            self.engine.wait(record, waited, seen)
        fields = self._document_fields(record)
        if record.status in FINAL:
            self.seen_ended.add(job_id)
            record.looks += 1
        if waited:
            fields |= {"Preference-Applied": f"wait={waited}", "Vary": "Prefer"}
        if tag and self._matches(tag, record) and not self.has("never 304"):
            if self.has("304 without Retry-After"):
                fields.pop("Retry-After", None)
            return 304, fields, None
        return 200, fields, self._shown(record)

    def _stumble(self, job_id: str) -> None:
        """Errors of a server that does not expect such ids."""
        if len(job_id) > 100 and self.has("500 for odd ids"):
            raise Refused(500, "oh")
        if not self._is_uuid(job_id) and self.has("500 for malformed ids"):
            raise Refused(500, "oh", {"Cache-Control": "private", "Content-Type": "text/html"})

    def _shown(self, record: Record) -> dict[str, Any]:
        document = record.document()
        if self.has("changes after the end") and record.first and record.status == "succeeded":
            document["result"] += record.version
            record.version += 1
        if self.has("a fifth word") and record.status == "succeeded":
            document["status"] = "done"
        if self.has("error null without failure"):
            document.setdefault("error", None)
        if self.has("another id in the document"):
            document["job_id"] = document["job_id"].upper()
        document |= drifted(record, self.faults)
        if self.has("times without milliseconds"):
            document |= {name: value[:19] + "Z" for name, value in record.times.items()}
        return document

    @staticmethod
    def _is_uuid(text: str) -> bool:
        try:
            return bool(uuid.UUID(text))
        except ValueError:
            return False

    def _tag(self, record: Record) -> str:
        version = 1 if self.has("one ETag for ever") else record.version
        weak = record.status not in FINAL or self.has("weak at the end")
        return f'{"W/" if weak else ""}"{record.id}-{version}"'

    def _matches(self, header: str, record: Record) -> bool:
        if header.strip() == "*" or self.has("304 for any tag"):
            return True
        return self._tag(record).removeprefix("W/") in [each.strip().removeprefix("W/") for each in header.split(",")]

    def _document_fields(self, record: Record) -> dict[str, str]:
        fields = {"ETag": self._tag(record), "Cache-Control": "no-cache"}
        if self.has("no ETag"):
            del fields["ETag"]
        if record.status in FINAL and self.has("final documents as HTML"):
            fields["Content-Type"] = "text/html"
        if record.status not in FINAL or self.has("Retry-After at the end"):
            fields["Retry-After"] = "soon" if self.has("Retry-After in words") else "1"
        return fields

    def delete(self, job_id: str, request: Request) -> Answer:
        if job_id in self.engine.gone and self.engine.gone[job_id][0] == "job-deleted":
            if self.has("404 for a second DELETE"):
                raise Refused(404, "no such job")
            return 204, {}, None
        record = self.find(job_id)
        tag = request.headers.get("If-Match")
        if tag and tag not in ("*", self._tag(record)) and not self.has("If-Match ignored"):
            raise Refused(412, "it has changed")
        if record.status not in FINAL and not self.has("DELETE of an active job"):
            raise Refused(409, "it has not ended")
        self.engine.forget(job_id, "job-deleted")
        return 204, {}, None

    def cancel(self, job_id: str) -> Answer:
        record = self.find(job_id)
        if self.has("cancel only says so") and record.status not in FINAL:
            return 200, {}, record.document()
        if not self.engine.cancel(record) and not self.has("cancel after the end"):
            raise Refused(409, "it has ended")
        return 200, self._document_fields(record), record.document()

    def result(self, job_id: str) -> Answer:
        record = self.find(job_id)
        if record.status != "succeeded" and not self.has("bare result always"):
            raise Refused(409, "there is none")
        return 200, {"ETag": self._tag(record)}, record.outcome.get("result")

    def deliveries(self, job_id: str) -> Answer:
        return 200, {}, {"attempts": [] if self.has("no log of webhooks") else self.find(job_id).attempts}

    def redeliver(self, job_id: str) -> Answer:
        self.teller.tell_again(self.find(job_id))
        return 202, {}, {}

    def about(self, path: str, request: Request) -> Answer:
        """What the server tells of itself."""
        if path in ("healthz", "readyz"):
            return 503 if self.has("not ready") else 200, {}, {"status": "ok"}
        if request.headers.get("If-None-Match") == '"1"' and not self.has("description without 304"):
            return 304, {"ETag": '"1"'}, None
        return 200, {"ETag": '"1"'}, {"tasks": []}

    def list(self, query: str) -> Answer:
        asked = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
        limit, cursor = asked.get("limit", "50"), asked.get("cursor", "0")
        sound = limit.isdecimal() and 0 < int(limit) <= 200 and cursor.isdecimal()
        if not sound or asked.get("status", "queued") not in ("queued", "running", *FINAL):
            if not self.has("any query taken"):
                raise Refused(400, "a malformed query")
            limit, cursor = "50", "0"
        newest = list(reversed(self.engine.jobs.values()))
        if self.has("oldest first"):
            newest.reverse()
        # The place of a job from the end does not move when others come in.
        start = len(newest) - int(cursor) if int(cursor) else 0
        page = newest[max(0, start - self.has("a job on two pages")) :][: int(limit)]
        rest = len(newest) - newest.index(page[-1]) - 1 if page else 0
        fields = {"Link": f'</jobs?limit={limit}&cursor={rest}>; rel="next"'} if rest else {}
        if self.has("no Link"):
            fields = {}
        hidden = () if self.has("results in the list") else ("result", "error")
        return (
            200,
            fields,
            {"jobs": [{name: value for name, value in each.document().items() if name not in hidden} for each in page]},
        )
