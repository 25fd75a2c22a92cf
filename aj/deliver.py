"""Deliver: webhooks that are owed go out, each attempt signed and recorded, until they arrive or are spent.

A delivery never changes its job. It claims from the outbox by lease, so that a deliverer may die at any moment
and another one repeats the attempt with the same id and the same bytes.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
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


@dataclass(frozen=True, slots=True)
class Done:
    """A delivery that a thread is done with, and what is to be recorded of it, if anything."""

    delivery: Delivery
    attempt: Attempt | None


class Deliver:
    """Delivers what is due, with many threads and a small share for each host.

    One thread takes turns with the store: it records what the others have brought, and claims what they are to do next,
    as many at a time as there are. The others send. One more listens for news.
    """

    def __init__(self, settings: Settings, outbox: Outbox, egress: Egress) -> None:
        self._settings, self._outbox, self._egress = settings, outbox, egress
        self._lease_s = settings.callback_timeout_s + LEASE_MARGIN_S
        self._under_way = self._doubtful = 0
        # Behind the condition: what the other threads tell the one that takes turns.
        self._changed = threading.Condition()
        self._done: list[Done] = []
        self._has_news = False

    def __call__(self, stop: threading.Event) -> None:
        """Works until `stop` is set, then lets the attempts under way come to their end. It closes the egress."""
        listening = threading.Thread(target=self._listen, args=(stop,), name="deliver-news", daemon=True)
        listening.start()
        with contextlib.closing(self._egress), ThreadPoolExecutor(THREADS, thread_name_prefix="deliver") as threads:
            next_in_s = self._turn(threads, stop)
            while self._under_way or not stop.is_set():
                self._wait_for_change(next_in_s)
                next_in_s = self._turn(threads, stop)
        listening.join()

    def _turn(self, threads: ThreadPoolExecutor, stop: threading.Event) -> float:
        """Records what was brought and hands out what is due; gives the seconds until the next turn, at most."""
        self._egress.close_old()
        done = self._take_done()
        made = [(each.delivery, each.attempt) for each in done if each.attempt is not None]
        room = 0 if stop.is_set() else THREADS - self._under_way
        if not (made or room):
            return LONGEST_NAP_S
        try:
            claimed, next_in_s = self._outbox.turn(made, room, self._lease_s, DOUBTFUL_THREADS - self._doubtful)
        except StoreUnavailable:
            # One whose keys are broken must not hold up the others: each is recorded by itself, as soon as it can be.
            for delivery, attempt in made:
                self._hand_out(threads, delivery, self._record, attempt)
            return LONGEST_NAP_S
        for delivery in claimed:
            self._hand_out(threads, delivery, self._attempt)
        return LONGEST_NAP_S if next_in_s is None or len(claimed) == room else min(LONGEST_NAP_S, next_in_s)

    def _take_done(self) -> list[Done]:
        with self._changed:
            done, self._done, self._has_news = self._done, [], False
            self._changed.notify_all()
        self._under_way -= len(done)
        self._doubtful -= sum(not each.delivery.host_answers for each in done)
        return done

    def _wait_for_change(self, at_most_s: float) -> None:
        """Returns when a thread is done, when there is news and a thread for it, or after `at_most_s` seconds."""
        with self._changed:
            has_room = self._under_way < THREADS
            self._changed.wait_for(lambda: self._done or (has_room and self._has_news), at_most_s)

    def _listen(self, stop: threading.Event) -> None:
        """Without it a webhook would wait for the next turn, a second at most."""
        while not stop.is_set():
            try:
                with contextlib.closing(self._outbox.news()) as news:
                    self._hear(news, stop)
            except StoreUnavailable:
                stop.wait(LONGEST_NAP_S)

    def _hear(self, news: News, stop: threading.Event) -> None:
        """Tells of news, and then is deaf until a turn has begun, so that a thousand webhooks are not news each."""
        while not stop.is_set():
            if news.wait(LONGEST_NAP_S):
                with self._changed:
                    self._has_news = True
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: not self._has_news, LONGEST_NAP_S)

    def _hand_out(
        self, threads: ThreadPoolExecutor, delivery: Delivery, do: Callable[..., Attempt | None], *more: Attempt
    ) -> None:
        self._under_way += 1
        self._doubtful += not delivery.host_answers
        threads.submit(self._do, delivery, do, *more)

    def _do(self, delivery: Delivery, do: Callable[..., Attempt | None], *more: Attempt) -> None:
        """What one thread does for a delivery, its lines of the log about the job; then the thread is free.

        Whatever goes wrong, the lease ends and the attempt is repeated.
        """
        attempt = None
        try:
            with about(delivery.job_id, traceparent=delivery.traceparent):
                try:
                    attempt = do(delivery, *more)
                except Exception:
                    log.exception("webhook of job %s: attempt %d broke", delivery.job_id, delivery.attempt)
        finally:
            with self._changed:
                self._done.append(Done(delivery, attempt))
                self._changed.notify_all()

    def _record(self, delivery: Delivery, attempt: Attempt) -> None:
        try:
            patiently(lambda: self._outbox.record(delivery, attempt), RECORD_FOR_S)
        except StoreUnavailable:
            log.error("webhook of job %s: attempt %d could not be recorded", delivery.job_id, delivery.attempt)

    def _attempt(self, delivery: Delivery) -> Attempt:
        """Sends, and judges what came of it."""
        begun_ms, begun_s = clock.now_ms(), clock.monotonic_s()
        tried = self._send(delivery)
        attempt = replace(self._judged(delivery, tried), log=tried.json(begun_ms, clock.monotonic_s() - begun_s))
        then = f"; next in {attempt.next_in_s:.1f} s" if attempt.state is CallbackState.PENDING else ""
        log.info("webhook of job %s: attempt %d: %s: %s%s", delivery.job_id, attempt.number, tried, attempt.state, then)
        return attempt

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
