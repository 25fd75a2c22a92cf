"""The webhooks of the reference server: signed, sent until they are taken, with switches for what can be wrong."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import threading
import time
from urllib.parse import urlsplit

from tests.check.engine import Record, now

KEY = b"reference server's webhook key 1"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
ATTEMPTS = 4
PAUSE_S = 0.05


class Teller:
    """Brings each webhook in a thread of its own."""

    def __init__(self, faults: frozenset[str]) -> None:
        self._faults = faults
        self._said: dict[str, bytes] = {}

    def tell(self, record: Record) -> None:
        if "no webhook" in self._faults:
            return
        if "webhook of success only" in self._faults and record.status == "failed":
            return
        threading.Thread(target=self._bring, args=(record,), daemon=True).start()

    def tell_again(self, record: Record) -> None:
        if "nothing sent on demand" not in self._faults:
            body = self._said.get(record.id, b"")
            threading.Thread(target=self._attempt, args=(record, record.callback, 0, body), daemon=True).start()

    def _bring(self, record: Record) -> None:
        address, stamp = record.callback or "", now()
        for attempt in range(ATTEMPTS):
            if "webhook with other bytes" in self._faults:
                stamp = f"{stamp} {attempt}"
            body = self._body(record, stamp)
            self._said[record.id] = body
            began_at = now()
            status, location = self._attempt(record, address, attempt, body)
            record.attempts.append({"at": began_at, "status": status, "duration_s": 0.01})
            if 300 <= status < 400 and "redirect followed" in self._faults:
                self._attempt(record, location, attempt, body)
                return
            taken = 200 <= status < 300
            if taken and "webhook after its 2xx" in self._faults:
                self._attempt(record, address, attempt, body)
            if taken or "webhook not sent again" in self._faults:
                return
            threading.Event().wait(PAUSE_S)

    def _attempt(self, record: Record, address: str, attempt: int, body: bytes) -> tuple[int, str]:
        headers = self._headers(record, attempt, body)
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
        try:
            connection.request("POST", parts.path, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader("Location") or ""
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def _body(self, record: Record, stamp: str) -> bytes:
        kind = "job.failed" if record.status == "failed" else "job.succeeded"
        own = {} if "webhook without type" in self._faults else {"type": kind, "timestamp": stamp}
        wrong = {"result": None} if "webhook with another result" in self._faults else {}
        said = {**own, **record.document(), **wrong}
        if "large results" in self._faults and "result" in said:
            del said["result"]
            said["result_omitted"] = True
        return json.dumps(said).encode()

    def _headers(self, record: Record, attempt: int, body: bytes) -> dict[str, str]:
        webhook_id = f"msg_{record.id}"
        if "another webhook-id on each attempt" in self._faults:
            webhook_id += f"_{attempt}"
        if "one webhook-id for all" in self._faults:
            webhook_id = "msg_1"
        stamp = str(int(time.time()) - (3600 if "old webhook-timestamp" in self._faults else 0))
        signed_body = body + b"\n" if "signature over other bytes" in self._faults else body
        mac = hmac.new(KEY, b".".join((webhook_id.encode(), stamp.encode(), signed_body)), hashlib.sha256).digest()
        headers = {
            "Content-Type": "Application/JSON" if "words in capitals" in self._faults else "application/json",
            "webhook-id": webhook_id,
            "webhook-timestamp": stamp,
            "webhook-signature": "v1," + base64.b64encode(mac).decode(),
        }
        if record.trace and "traceparent dropped" not in self._faults:
            headers["traceparent"] = record.trace
        if "unsigned webhook" in self._faults:
            del headers["webhook-signature"]
        return headers
