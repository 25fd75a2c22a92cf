"""The outbox and its deliverer, inside a test: webhooks that are owed, brought, looked at."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from flask.testing import FlaskClient

from aj import clock
from aj.deliver import Deliver
from aj.egress import Egress
from aj.job import Outcome
from aj.settings import Settings
from aj.store import Keys, Outbox, connect
from tests.conftest import Deployment
from tests.support.inside import attempt_at
from tests.support.jobs import document, submit
from tests.support.receiver import Received
from tests.support.waiting import wait_until

QUICK = {"AJ_CALLBACK_SCHEDULE_S": "0,0,0"}
Answer = tuple[int, dict[str, str]]


def answers(*given: Answer) -> Callable[[Received], Answer]:
    """A receiver's answers, one after the other, then 200 for ever."""
    left = list(given)
    return lambda _: left.pop(0) if left else (200, {})


def state(client: FlaskClient, job_id: str) -> dict[str, Any]:
    """The callback member of the job's document."""
    return dict(document(client, job_id)["callback"])


def wait_for_state(client: FlaskClient, job_id: str, wanted: str) -> dict[str, Any]:
    """The callback member once its state is `wanted`."""
    wait_until(lambda: state(client, job_id)["state"] == wanted, what=f"a delivery that is {wanted}")
    return state(client, job_id)


def seconds_until(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() - clock.now_ms() / 1000


def outbox_of(deployment: Deployment, kind: type[Outbox] = Outbox) -> Outbox:
    return kind(connect(deployment.settings.redis_url), Keys(deployment.settings.prefix))


def deliveries(deployment: Deployment) -> list[str]:
    """The keys of all deliveries in the outbox, one for each."""
    return deployment.keys("out:job:*")


def message(deployment: Deployment, job_id: str) -> dict[str, Any]:
    """The webhook of the job as it stands in the outbox."""
    body: Any = deployment.redis.hget(f"{deployment.settings.prefix}:out:job:{job_id}", "body")
    return dict(json.loads(body))


def outbox_indexes(deployment: Deployment) -> list[str]:
    """The keys that list what is to be delivered; all are gone when nothing is."""
    return deployment.keys("out:hosts") + deployment.keys("out:due:*") + deployment.keys("out:busy:*")


def ended(deployment: Deployment, client: FlaskClient, url: str, outcome: Outcome | None = None, **changes: str) -> str:
    """The id of a job that has just ended, its webhook to `url` in the outbox. `changes` are settings of its worker."""
    job_id = submit(client, n=1, callback_url=url)
    attempt = attempt_at(deployment, job_id, f"execution of {job_id}", Settings.from_env({**deployment.env, **changes}))
    attempt.start([])
    attempt.decide(outcome or Outcome.succeeded(b"1"))
    attempt.end([])
    return job_id


@contextmanager
def delivering(deployment: Deployment, **changes: str) -> Iterator[None]:
    """A deliverer in a thread."""
    with delivering_from(outbox_of(deployment), deployment, **changes):
        yield


@contextmanager
def delivering_from(outbox: Outbox, deployment: Deployment, **changes: str) -> Iterator[None]:
    """A deliverer in a thread that works from `outbox`."""
    settings = Settings.from_env({**deployment.env, **changes})
    egress = Egress(settings.callback_allow, settings.callback_timeout_s, "aj/test")
    deliver, stop = Deliver(settings, outbox, egress), threading.Event()
    thread = threading.Thread(target=deliver, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        deployment.redis.publish(Keys(settings.prefix).news, "stop")
        thread.join()
