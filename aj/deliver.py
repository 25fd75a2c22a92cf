"""Deliver: webhooks that are owed go out, each attempt signed and recorded, until they arrive or are spent.

A delivery never changes its job. It claims from the outbox by lease, so that a deliverer may die at any moment
and another one repeats the attempt with the same id and the same bytes.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus

from aj import clock
from aj.egress import Egress
from aj.errors import AddressRefused, DeliveryFailed, StoreUnavailable
from aj.headers import TRACE_HEADER
from aj.job import CallbackState, to_json
from aj.logs import about
from aj.schedule import delay_before_s
from aj.settings import Settings
from aj.signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from aj.store import Attempt, Delivery, News, Outbox, patiently
from aj.webhook import webhook_id

log = logging.getLogger("aj.deliver")

THREADS = 32
# Of these, how many may wait at a time for hosts that have not answered lately; the rest is for those that answer.
DOUBTFUL_THREADS = 24
LONGEST_NAP_S = 1.0
LEASE_MARGIN_S = 15
RECORD_FOR_S = 60


@dataclass(frozen=True, slots=True)
class Tried:
    """What one attempt met: the receiver's status, or in a word why there is none, with the reason for the log."""

    status: int | None = None
    retry_after_s: float | None = None
    error: str | None = None
    detail: str = ""

    def json(self, begun_ms: int, took_s: float) -> bytes:
        """The attempt as a caller may see it; the reason may name what is behind a firewall, and is left out."""
        shown = {"status": self.status} if self.error is None else {"error": self.error}
        return to_json({"at": clock.rfc3339(begun_ms), **shown, "duration_s": round(took_s, 3)})

    def __str__(self) -> str:
        return f"answer {self.status}" if self.error is None else f"no answer ({self.error}: {self.detail})"


class Deliver:
    """Delivers what is due, with many threads and a small share for each host."""

    def __init__(self, settings: Settings, outbox: Outbox, egress: Egress) -> None:
        self._settings, self._outbox, self._egress = settings, outbox, egress
        self._threads_free = threading.Condition()
        self._under_way = self._doubtful = 0

    def __call__(self, stop: threading.Event) -> None:
        """Works until `stop` is set, then lets the attempts under way come to their end."""
        news = self._outbox.news()
        lease_s = self._settings.callback_timeout_s + LEASE_MARGIN_S
        with ThreadPoolExecutor(THREADS, thread_name_prefix="deliver") as threads:
            while not stop.is_set():
                try:
                    self._hand_out(threads, news, lease_s)
                except StoreUnavailable:
                    stop.wait(LONGEST_NAP_S)

    def _hand_out(self, threads: ThreadPoolExecutor, news: News, lease_s: float) -> None:
        """Gives what is due to free threads; where nothing is, waits for news, a second at most."""
        with self._threads_free:
            if not self._threads_free.wait_for(lambda: self._under_way < THREADS, LONGEST_NAP_S):
                return
            room, doubtful_room = THREADS - self._under_way, DOUBTFUL_THREADS - self._doubtful
        claimed, next_in_s = self._outbox.claim(room, lease_s, doubtful_room)
        with self._threads_free:
            self._under_way += len(claimed)
            self._doubtful += sum(not each.host_answers for each in claimed)
        for delivery in claimed:
            threads.submit(self._attempt, delivery)
        if not claimed:
            news.wait(LONGEST_NAP_S if next_in_s is None else min(LONGEST_NAP_S, next_in_s))

    def _attempt(self, delivery: Delivery) -> None:
        """One attempt, its lines of the log about the job; then this thread is free."""
        try:
            with about(delivery.job_id, traceparent=delivery.traceparent):
                self._send_and_record(delivery)
        finally:
            with self._threads_free:
                self._under_way -= 1
                self._doubtful -= not delivery.host_answers
                self._threads_free.notify()

    def _send_and_record(self, delivery: Delivery) -> None:
        """Whatever goes wrong, the lease ends and the attempt is repeated."""
        try:
            begun_ms, begun_s = clock.now_ms(), clock.monotonic_s()
            tried = self._send(delivery)
            attempt = replace(self._judged(delivery, tried), log=tried.json(begun_ms, clock.monotonic_s() - begun_s))
            then = f"; next in {attempt.next_in_s:.1f} s" if attempt.state is CallbackState.PENDING else ""
            log.info(
                "webhook of job %s: attempt %d: %s: %s%s", delivery.job_id, attempt.number, tried, attempt.state, then
            )
            patiently(lambda: self._outbox.record(delivery, attempt), RECORD_FOR_S)
        except StoreUnavailable:
            log.error("webhook of job %s: attempt %d could not be recorded", delivery.job_id, delivery.attempt)
        except Exception:
            log.exception("webhook of job %s: attempt %d broke", delivery.job_id, delivery.attempt)

    def _send(self, delivery: Delivery) -> Tried:
        """Signs and sends. Where deliverers died under every attempt that the schedule allows, nothing is sent."""
        if delivery.attempt > len(self._settings.callback_schedule_s):
            return Tried(error="not-sent")
        now_s = clock.now_ms() // 1000
        headers = {
            "Content-Type": "application/json",
            ID_HEADER: webhook_id(delivery.job_id),
            TIMESTAMP_HEADER: str(now_s),
        }
        if delivery.traceparent is not None:
            headers[TRACE_HEADER] = delivery.traceparent
        if self._settings.webhook_secrets:
            headers[SIGNATURE_HEADER] = sign(self._settings.webhook_secrets, headers[ID_HEADER], now_s, delivery.body)
        try:
            answer = self._egress.post(delivery.url, headers, delivery.body)
        except DeliveryFailed as failed:
            return Tried(error=failed.kind, detail=str(failed))
        except AddressRefused as refused:
            return Tried(error="address-refused", detail=str(refused))
        return Tried(answer.status, answer.retry_after_s)

    def _judged(self, delivery: Delivery, tried: Tried) -> Attempt:
        """What the attempt means for the delivery."""
        schedule_s, status = self._settings.callback_schedule_s, tried.status
        number = min(delivery.attempt, len(schedule_s))
        if status is not None and 200 <= status < 300:
            return Attempt(CallbackState.DELIVERED, status, number)
        if status == HTTPStatus.GONE:
            return Attempt(CallbackState.GONE, status, number)
        may_ask = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
        delay_s = delay_before_s(delivery.attempt + 1, schedule_s, tried.retry_after_s if may_ask else None)
        if delay_s is None:
            return Attempt(CallbackState.EXHAUSTED, status, number)
        return Attempt(CallbackState.PENDING, status, number, delay_s)
