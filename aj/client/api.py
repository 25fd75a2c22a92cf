"""An API by its address: submitting, and finding jobs again. What a call may be told is checked here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import urlencode
from uuid import uuid4

import requests

from aj.client.address import Base
from aj.client.call import Answer, Call, NoAnswer
from aj.client.errors import ApiError, ClientError, NotUnderstood, Unreachable, is_safe_again
from aj.client.exchange import Exchange
from aj.client.job import Job, job_document
from aj.client.pacing import Deadline
from aj.client.transport import Transport, api_error, checked, json_list, json_object

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_API_KEY = re.compile(r"[\x21-\x7e]{1,4096}")

# Pages of a rare kind may be empty, each of a thousand jobs; but not without end.
EMPTY_PAGES_MOST = 1000


class Client:
    """One API, mounted at `url`: `http://127.0.0.1:8140`, `https://host/api`.

    `api_key` is sent as `Authorization: Bearer …`, to the origin of `url` only. `timeout_s` is the total time of one
    call with all its retries; `Job.wait` and `Job.result` have their own. `session` is one of requests' that is set up
    for what your network needs; without it the client has one of its own.
    Several threads may share a client. After a fork the child may go on with it.

    Raises: ClientError: `url` or `api_key` cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        session: requests.Session | None = None,
        on_trouble: Callable[[str], None] | None = None,
    ) -> None:
        if api_key is not None and not _API_KEY.fullmatch(api_key):
            raise ClientError("an API key is visible ASCII, without spaces")
        if not timeout_s > 0:
            raise ClientError(f"timeout_s is {timeout_s}; it must be more than 0")
        base = Base(url)
        self._exchange = Exchange(api_key, session, is_loopback=base.is_loopback)
        self._transport = Transport(base, self._exchange, timeout_s, on_trouble)

    def __repr__(self) -> str:
        return f"<Client {self._transport.base.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the connections that are kept. A session that you gave stays open."""
        self._exchange.close()

    def submit(
        self,
        body: Mapping[str, Any] | None = None,
        /,
        *,
        idempotency_key: str | None = None,
        timeout_s: float | None = None,
        wait_s: float = 0,
        **members: Any,
    ) -> Job:
        """Submits a job: `submit(n=5)`, `submit(task="square", n=5, callback_url=…, metadata={…})`.

        `body` has members whose names are taken here. Every submission has an Idempotency-Key, so that it is safe to
        repeat it after any trouble; `idempotency_key` is for one that must stay the same in another process too.
        The server is asked to hold its answer for `wait_s` seconds (whole ones), beside `timeout_s`: a job that ends in
        that time comes back with its outcome.

        Raises:
            ApiError: it was refused; where it has an `idempotency_key`, the job may have been accepted all the same.
            Unreachable: no usable answer in time; its `idempotency_key` makes it safe to submit the same again.
            TypeError, ValueError: a member is no JSON, and is named; or one is given twice.
        """
        if body is not None and body.keys() & members.keys():
            raise TypeError(f"given twice: {', '.join(sorted(body.keys() & members.keys()))}")
        sent = _encoded({**(body or {}), **members})
        key = str(uuid4()) if idempotency_key is None else idempotency_key
        hold_s = int(max(0, wait_s))
        call = Call("POST", self._transport.base.of("/jobs"), sent, {"Idempotency-Key": _quoted(key)}, hold_s or None)
        deadline = Deadline((self._transport.timeout_s if timeout_s is None else timeout_s) + hold_s)
        try:
            return self._submitted(self._transport.send(call, deadline))
        except Unreachable as trouble:
            text = f"{trouble}; {is_safe_again(key)}"
            raise Unreachable(text, trouble.last, key, retryable=trouble.retryable) from trouble
        except ApiError as refused:
            refused.keep(key)
            raise

    def _submitted(self, answer: Answer) -> Job:
        document = json_object(checked(answer))
        location = answer.fields.get("Location")
        url = self._transport.location(answer, location) if location else self._named(answer, document)
        job = Job(self._transport, url)
        job.take(answer)
        return job

    def job(self, url: str) -> Job:
        """The job with this id, Location or `Job.url`. Nothing is asked yet.

        Raises: ClientError: it is no address, or one at another origin.
        """
        return Job(self._transport, self._transport.base.job(url), named="" if "/" in url else url)

    def jobs(self, *, status: str | None = None, task: str | None = None) -> Iterator[Job]:
        """The jobs of this caller, newest first; pages are fetched as they are needed.

        Their documents lack the outcome, which `Job.wait`, `Job.result` and `Job.refresh` fetch.
        """
        query = urlencode({name: value for name, value in (("status", status), ("task", task)) if value is not None})
        url: str | None = self._transport.base.of("/jobs") + (f"?{query}" if query else "")
        seen: set[str] = set()
        without = 0
        while url is not None and url not in seen:
            seen.add(url)
            answer = checked(self._transport.send(Call("GET", url)))
            documents = json_list(answer, "jobs")
            without = 0 if documents else without + 1
            if without > EMPTY_PAGES_MOST:
                raise NotUnderstood(answer.status, {}, f"{without} pages without a job, and still a next one")
            for document in documents:
                url_of_job = self._named(answer, job_document(answer, document))
                yield Job(self._transport, url_of_job, document)
            url = None if answer.next_url is None else self._transport.location(answer, answer.next_url)

    def _named(self, answer: Answer, document: Mapping[str, Any]) -> str:
        """The address of a job by the id that an answer has for it. Raises: NotUnderstood: it is none."""
        named = document.get("job_id")
        try:
            if isinstance(named, str):
                return self._transport.base.job(named)
        except ClientError:
            pass
        raise NotUnderstood(answer.status, {}, f"the id of the job is {named!r:.80}, which leads nowhere")

    def tasks(self) -> list[dict[str, Any]]:
        """What can be submitted: the tasks, as `GET /tasks` has them."""
        return json_list(checked(self._transport.send(Call("GET", self._transport.base.of("/tasks")))), "tasks")

    def unready_because(self, timeout_s: float = 5.0) -> str | None:
        """Why the API says that it cannot run jobs at the moment, as `GET /readyz` has it; empty where it can.

        It is asked once. None where the API does not tell, as one of another kind.

        Raises: Unreachable.
        """
        call = Call("GET", self._transport.base.of("/readyz"))
        try:
            answer = self._exchange.ask(call, Deadline(timeout_s))
        except NoAnswer as trouble:
            raise Unreachable(f"{call.method} {call.url}: {trouble}") from trouble
        if answer.status == HTTPStatus.OK:
            return ""
        said = api_error(answer)
        return said.detail if said.slug == "not-ready" else None


def _encoded(members: Mapping[str, Any]) -> bytes:
    """The members as JSON. Raises: TypeError, ValueError: one of them is none; the message begins with its name."""
    try:
        return json.dumps(members, allow_nan=False).encode()
    except (TypeError, ValueError):
        for name, value in members.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as trouble:
                kind = TypeError if isinstance(trouble, TypeError) else ValueError
                raise kind(f"{name} cannot be sent as JSON: {trouble}") from None
        raise


def _quoted(key: str) -> str:
    """The key as a structured field. Raises: ClientError. Source: RFC 9651, section 3.3.3."""
    if not _KEY.fullmatch(key):
        raise ClientError("an Idempotency-Key is 1 to 255 visible ASCII characters")
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
