"""The outbox: webhooks that are owed, claimed under leases, recorded attempt by attempt."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from aj.job import CallbackState
from aj.store.client import Client, errors_converted
from aj.store.keys import Keys
from aj.store.scripts import Script

# Deliveries that one host, whatever the port, may hold at a time, over all deliverers of the deployment.
HOST_SHARE = 4
# How long a host that answered may hold its whole share; one that did not, or is new, gets one delivery at a time.
ANSWERS_FOR_S = 600


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
        self._claim = Script(client, "schedule_host", "claim_deliveries")
        self._record = Script(client, "count", "schedule_host", "record_attempt")

    def claim(self, most: int, lease_s: float, most_doubtful: int | None = None) -> tuple[list[Delivery], float | None]:
        """Up to `most` due deliveries under a lease, and the seconds until the next is due (None: nothing waits).

        At most `most_doubtful` of them are for hosts that have not answered lately; None sets no such limit.

        Raises: StoreUnavailable.
        """
        token = secrets.token_hex(8)
        words: list[str | int] = [f"{self._keys.prefix}:out", most, HOST_SHARE, int(lease_s * 1000), token]
        wait_ms, *rows = self._claim([self._keys.hosts], [*words, most if most_doubtful is None else most_doubtful])
        claimed = [
            Delivery(
                job.decode(), url.decode(), host.decode(), body, attempt, token, bool(answers), trace and trace.decode()
            )
            for job, url, host, body, attempt, answers, trace in rows
        ]
        return claimed, None if wait_ms < 0 else wait_ms / 1000

    def record(self, delivery: Delivery, attempt: Attempt) -> None:
        """Records what an attempt brought. Raises: StoreUnavailable."""
        keys, job_id, host = self._keys, delivery.job_id, delivery.host
        names = [
            keys.delivery(job_id),
            keys.job(job_id),
            keys.hosts,
            keys.due(host),
            keys.busy(host),
            keys.answers(host),
            keys.pending,
        ]
        words = [job_id, delivery.token, attempt.state, attempt.http_status or "", int(attempt.next_in_s * 1000), host]
        self._record(names, [*words, HOST_SHARE, keys.news, attempt.number, ANSWERS_FOR_S, attempt.log])

    def news(self) -> News:
        """A subscription that wakes a deliverer when a webhook is written."""
        return News(self._client, self._keys.news)


class News:
    """Waits for the outbox's channel; a lost connection is a wait without news."""

    def __init__(self, client: Client, channel: str) -> None:
        self._pubsub = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        self._channel = channel

    def wait(self, at_most_s: float) -> None:
        """Returns when a webhook was written, or after `at_most_s` seconds. Raises: StoreUnavailable."""
        with errors_converted():
            if not self._pubsub.subscribed:
                self._pubsub.subscribe(self._channel)
            if self._pubsub.get_message(timeout=at_most_s) is not None:
                while self._pubsub.get_message(timeout=0) is not None:
                    pass
