"""A job as the other side of the line sees it: where it is, what was last heard of it, and waiting for its end.

It decides when to look; how a request gets there is the transport's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from aj import clock
from aj.client.address import job_id
from aj.client.call import Answer, Call
from aj.client.errors import NO_TYPE, ClientError, NotUnderstood, Unreachable
from aj.client.pacing import Deadline, pause
from aj.client.transport import Transport, checked, json_list, json_object

FINAL = frozenset({"succeeded", "failed"})
WORDS = frozenset({"queued", "running"}) | FINAL
# A look is held for at most this long, in seconds: many proxies give up after 60.
HOLD_MOST_S = 30
# What a held look leaves of the time, so that its answer arrives within it.
MARGIN_S = 1.0
# Without a Retry-After, and the least that lies between two looks: of a server that holds them, and of others.
RETRY_AFTER_S = 1.0
LEAST_HELD_S, LEAST_S = 0.2, 1.0


class Job:
    """One job. `url` is its address; `document` is the job document as last seen, with whatever the server put in it.

    `trouble` is what the last attempt of a look met while `wait` asks again and again, and empty otherwise; another
    thread may read it.
    It belongs to one thread at a time. To hand it to another process, hand over `url` and call `Client.job` there.
    Every method that asks may raise ApiError, JobUnknown (404), JobGone (410) and Unreachable.
    """

    def __init__(
        self, transport: Transport, url: str, document: dict[str, Any] | None = None, *, named: str = ""
    ) -> None:
        """Not for users: `Client.submit`, `Client.job` and `Client.jobs` make jobs. `named` is the id asked for."""
        self.url, self.document = url, document or {}
        self.retry_after_s: int | None = None
        self.trouble = ""
        self._named = named
        self._transport, self._etag, self._due_at_s = transport, "", 0.0

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.status or 'not looked at'}>"

    @property
    def id(self) -> str:
        said = self.document.get("job_id")
        return said if isinstance(said, str) else job_id(self.url)

    @property
    def status(self) -> str:
        """`queued`, `running`, `succeeded` or `failed`; empty before the first look."""
        return str(self.document.get("status", ""))

    @property
    def done(self) -> bool:
        """Whether the job has ended, as far as was last seen."""
        return self.status in FINAL

    @property
    def progress(self) -> dict[str, Any] | None:
        """`{"fraction", "message"?}`, where the task has reported any."""
        return self.document.get("progress")

    @property
    def position(self) -> int | None:
        """The job's place in its queue, from 1, while it stands in it."""
        return self.document.get("position")

    @property
    def eta_s(self) -> int | None:
        """Estimated seconds until its end."""
        return self.document.get("eta_s")

    def refresh(self) -> Self:
        """Looks once."""
        self.take(self._transport.send(Call("GET", self.url)))
        return self

    def wait(self, timeout_s: float | None = 600.0, on_progress: Callable[[Job], None] | None = None) -> Self:
        """Waits until the job has ended, whichever way; None waits for ever.

        Looks are held by the server where it can do that, and never come sooner than `Retry-After` allows otherwise.
        `on_progress` is called in this thread with each new document, the last one included; what it raises comes out.
        Once the job has been heard of, an outage of the server is no end of the wait, however long it lasts.
        An exception, such as KeyboardInterrupt, leaves the job as it is.

        Raises: JobTimeout: the time is over, the job goes on.
        """
        deadline, hold_most_s = Deadline(timeout_s), HOLD_MOST_S
        while not self._is_complete():
            self._await_turn(deadline)
            seen, call = self.document, self._next_look(deadline, hold_most_s, watches=on_progress is not None)
            answer = self._look(call, deadline)
            if answer.call.hold_s != call.hold_s:  # it was not answered while it was held
                hold_most_s = max(1, hold_most_s // 2)
            elif call.hold_s and answer.took_s >= call.hold_s / 2:  # slowly, so that who cuts at a time rarely cuts
                hold_most_s = min(HOLD_MOST_S, hold_most_s + 1)
            self.take(answer)
            if on_progress is not None and self.document != seen:
                on_progress(self)
        return self

    def result(self, timeout_s: float | None = 600.0) -> Any:
        """What the task returned; waits for it where needed.

        Raises:
            JobFailed: the job ended without a result.
            JobTimeout: the time is over, the job goes on.
        """
        self.wait(timeout_s)
        if self.status == "failed":
            raise JobFailed(self)
        return self.document["result"]

    def cancel(self) -> Self:
        """Cancels the job, which then ends `failed` with `error.type` `cancelled`. Again is harmless.

        Raises: ApiError: 409, it has ended otherwise.
        """
        self.take(self._transport.send(Call("POST", self._below("/cancel"))))
        return self

    def delete(self) -> None:
        """Makes the server forget an ended job. Again is harmless. Raises: ApiError: 409, it has not ended."""
        checked(self._transport.send(Call("DELETE", self.url)), of_job=True)

    def deliveries(self) -> list[dict[str, Any]]:
        """The attempts so far to bring the job's webhook, oldest first."""
        answer = self._transport.send(Call("GET", self._below("/deliveries")))
        return json_list(checked(answer, of_job=True), "attempts")

    def redeliver(self) -> None:
        """Sends the job's webhook again.

        As it is not idempotent it is asked for once: where the answer is lost, Unreachable says that it may have
        happened. Only a 429 or 503, by which the server says that it did nothing, is followed by another attempt.

        Raises: ApiError: 409, the job has no webhook, or attempts are still to come.
        """
        call = Call("POST", self._below("/deliveries"), is_idempotent=False)
        checked(self._transport.send(call), of_job=True)

    def take(self, answer: Answer) -> None:
        """Not for users: notes what an answer says of the job. Raises: ApiError."""
        seen = self.document
        if answer.status != 304 or not self.document:
            document = job_document(answer, json_object(checked(answer, of_job=True)))
            status = document["status"]
            known = seen.get("job_id", self._named)
            if known and document.get("job_id", known) != known:
                raise NotUnderstood(answer.status, {}, "the answer is about another job")
            if answer.call.method == "GET" and status in FINAL and not _has_outcome(document):
                raise NotUnderstood(answer.status, {}, f"the job {status}, and the answer does not say how")
            self.document, self._etag = document, answer.fields.get("ETag", "")
        else:
            self._etag = ""  # so that the next look brings what moves without it: position and estimate
        asked_s = answer.retry_after_s
        self.retry_after_s = None if asked_s is None or self.done else int(asked_s)
        may_come_at_once = _is_holding(answer, has_news=self.document != seen)
        pause_s = LEAST_HELD_S if may_come_at_once else max(LEAST_S, RETRY_AFTER_S if asked_s is None else asked_s)
        self._due_at_s = clock.monotonic_s() + pause_s

    def _is_complete(self) -> bool:
        """Whether nothing is left to wait for; the documents of a list lack the outcome."""
        return self.done and _has_outcome(self.document)

    def _await_turn(self, deadline: Deadline) -> None:
        """Lets the time go by until the job may be looked at. Raises: JobTimeout: that comes too late."""
        pause_s, left_s = self._due_at_s - clock.monotonic_s(), deadline.left_s()
        if pause_s >= left_s:
            pause(left_s)
            raise JobTimeout(self, "")
        if pause_s > 0:
            pause(pause_s)

    def _next_look(self, deadline: Deadline, hold_most_s: int, *, watches: bool) -> Call:
        """How to look. Who watches needs an ETag first: with it, a look is held until anything changes."""
        hold_s = int(min(hold_most_s, deadline.left_s() - MARGIN_S))
        if hold_s < 1:
            return Call("GET", self.url)
        if not watches:
            return Call("GET", self.url, hold_s=hold_s)
        if not self._etag:
            return Call("GET", self.url, hold_s=0)  # answered at once; says whether the server holds at all
        return Call("GET", self.url, fields={"If-None-Match": self._etag}, hold_s=hold_s)

    def _look(self, call: Call, deadline: Deadline) -> Answer:
        """Looks, as often as it takes. A job that was never heard of has no more time than any other call."""
        attempt_s = (call.hold_s or 0) + self._transport.timeout_s
        has_been_seen = bool(self.document)
        try:
            until = deadline if has_been_seen else deadline.sooner(attempt_s)
            return self._transport.send(call, until, attempt_s, self._meet)
        except Unreachable as trouble:
            if has_been_seen and trouble.retryable:
                asked_s = trouble.last.retry_after_s if trouble.last is not None else None
                self._due_at_s = clock.monotonic_s() + (asked_s or 0.0)
                pause(deadline.left_s())  # so that who waits again and again asks no more often for it
                raise JobTimeout(self, f"the last look met trouble: {trouble}") from trouble
            raise
        finally:
            self.trouble = ""

    def _meet(self, trouble: str) -> None:
        self.trouble = trouble

    def _below(self, path: str) -> str:
        address, mark, query = self.url.partition("?")
        return address + path + mark + query


class _Away(Transport):
    """Stands where the transport was, in a job that comes out of the pickle of an error."""

    def __init__(self, url: str) -> None:
        self.timeout_s, self._url = 0.0, url

    def send(self, *_: object) -> Answer:
        raise ClientError(f"this job came with an error, and without its client, which picks it up: job({self._url!r})")


class _AboutJob(ClientError):
    """`job` is what it is about."""

    job: Job

    def __reduce__(self) -> tuple[Any, ...]:
        """The job goes along as it was last seen, without its client: nobody looks for an API key in an error."""
        made, args, state = super().__reduce__()
        job = Job(_Away(self.job.url), self.job.url, self.job.document)
        job.retry_after_s = self.job.retry_after_s
        return made, args, {**state, "job": job}


class JobFailed(_AboutJob):
    """The job ended without a result. `type` is why, such as `task-failed`; `detail` says more."""

    def __init__(self, job: Job) -> None:
        error = job.document.get("error")
        said: dict[str, Any] = error if isinstance(error, dict) else {}
        self.job = job
        self.type = str(said.get("type", NO_TYPE))
        self.detail = str(said.get("detail", said.get("title", "")))
        super().__init__(f"job {job.id} failed: {self.type}: {self.detail}")


class JobTimeout(_AboutJob):
    """The wait is over and the job goes on: `job` can be waited for again, here or by its `url` elsewhere."""

    def __init__(self, job: Job, more: str) -> None:
        self.job = job
        super().__init__(f"job {job.id} has not been seen to end in time{'; ' if more else ''}{more}")


def job_document(answer: Answer, document: Any) -> dict[str, Any]:
    """What an answer says of a job. Raises: NotUnderstood: that is no object, or has none of the four words."""
    status = document.get("status") if isinstance(document, dict) else None
    if not isinstance(status, str) or status not in WORDS:
        raise NotUnderstood(answer.status, {}, f"the job's status is {status!r:.80}, which is none of the four")
    return document  # type: ignore[no-any-return]


def _has_outcome(document: dict[str, Any]) -> bool:
    return ("result" if document.get("status") == "succeeded" else "error") in document


def _is_holding(answer: Answer, *, has_news: bool) -> bool:
    """Whether the next look may follow this answer at once, since the server is going to hold it.

    A server may claim to hold and not do it. So one that answered at once must have had news to tell, and been asked
    for news.
    """
    hold_s = answer.call.hold_s
    if hold_s is None:
        return False
    if hold_s and answer.took_s >= hold_s / 2:
        return True
    is_for_news = "If-None-Match" in answer.call.fields or (hold_s == 0 and "ETag" in answer.fields)
    return is_for_news and has_news and "wait" in answer.fields.get("Preference-Applied", "").lower()
