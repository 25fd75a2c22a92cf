"""The outbox: webhooks that are owed, claimed under leases, recorded attempt by attempt."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import redis

from aj.job import CallbackState
from aj.store.client import Client, errors_converted
from aj.store.keys import Keys
from aj.store.scripts import Script

# Deliveries that one host, whatever the port, may hold at a time, over all deliverers of the deployment.
HOST_SHARE = 4
# So many waits for news in a row without any, and without an answer to a ping, and the subscription is given up.
SILENCES = 3


@dataclass(frozen=True, slots=True)
class Delivery:
    """One webhook under one lease. `attempt` counts from 1; `token` marks the claim.

    `host_answers` says that its host has answered lately, so that an attempt will probably not take long.
    `traceparent` is that of the job's submission.
    """

    job_id: str
    url: str
    host: str
    body: bytes
    attempt: int
    token: str
    host_answers: bool
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an attempt brought: the state after it, the receiver's status (None: no answer), its number from 1.

    While the state is pending the next one is due in `next_in_s` seconds. `log` is what is kept of it, as JSON.
    """

    state: CallbackState
    http_status: int | None
    number: int
    next_in_s: float = 0.0
    log: bytes = b"{}"


class Outbox:
    """Deliveries that are due, by host."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys
        pieces = ("count", "record_attempt", "schedule_host", "claim_deliveries", "deliver")
        self._deliver = Script(client, *pieces)

    def turn(
        self, made: Sequence[tuple[Delivery, Attempt]], most: int, lease_s: float, most_doubtful: int | None = None
    ) -> tuple[list[Delivery], float | None]:
        """Records attempts and claims up to `most` due deliveries under a lease, in one step and one round trip.

        Gives what was claimed, and the seconds until the next is due (None: nothing waits). At most `most_doubtful`
        of them are for hosts that have not answered lately; None sets no such limit.

        Raises: StoreUnavailable.
        """
        keys, token = self._keys, secrets.token_hex(8)
        words: list[str | int | bytes] = [keys.outbox, keys.job(""), keys.news, HOST_SHARE, most]
        words += [most if most_doubtful is None else most_doubtful, int(lease_s * 1000), token]
        for delivery, attempt in made:
            words += [delivery.job_id, delivery.host, delivery.token, attempt.state, attempt.http_status or ""]
            words += [attempt.number, int(attempt.next_in_s * 1000), attempt.log]
        wait_ms, *rows = self._deliver([keys.hosts, keys.pending], words)
        claimed = [
            Delivery(
                job.decode(), url.decode(), host.decode(), body, attempt, token, bool(answers), trace and trace.decode()
            )
            for job, url, host, body, attempt, answers, trace in rows
        ]
        return claimed, None if wait_ms < 0 else wait_ms / 1000

    def claim(self, most: int, lease_s: float, most_doubtful: int | None = None) -> tuple[list[Delivery], float | None]:
        """A turn that has nothing to record. Raises: StoreUnavailable."""
        return self.turn([], most, lease_s, most_doubtful)

    def record(self, delivery: Delivery, attempt: Attempt) -> None:
        """A turn that wants nothing more. Raises: StoreUnavailable."""
        self.turn([(delivery, attempt)], 0, 0)

    def news(self) -> News:
        """A subscription that wakes a deliverer when a webhook is written."""
        return News(self._client, self._keys.news)


class News:
    """Waits for the outbox's channel. One that has failed is closed, and another one takes its place."""

    def __init__(self, client: Client, channel: str) -> None:
        self._pubsub = client.pubsub()  # type: ignore[no-untyped-call]
        self._channel = channel
        self._silences = 0

    def wait(self, at_most_s: float) -> bool:
        """Whether a webhook was written, or may have been before this could hear of it, within `at_most_s` seconds.

        Raises: StoreUnavailable: also where the connection is dead without a sign, and silent for ever.
        """
        with errors_converted():
            if not self._pubsub.subscribed:
                self._pubsub.subscribe(self._channel)
            message = self._pubsub.get_message(timeout=at_most_s)
            if message is None:
                if self._silences == SILENCES:
                    raise redis.ConnectionError("the subscription gives no sign of life")
                self._silences += 1
                self._pubsub.ping()
                return False
            self._silences = 0
            is_news = bool(message["type"] != "pong")
            while (message := self._pubsub.get_message(timeout=0)) is not None:
                is_news = is_news or message["type"] != "pong"
            return is_news

    def close(self) -> None:
        """Ends the subscription."""
        self._pubsub.close()
