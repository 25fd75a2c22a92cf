"""One soak: a store, worker processes, and a client that submits until it has submitted enough.

Jobs succeed, fail, run twice, are cancelled, and owe webhooks that nobody takes.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from flask.testing import FlaskClient

from aj import create_app
from aj.clock import monotonic_s
from aj.local.embedded import start_server
from aj.settings import Settings
from tests.support.leaks import left_over
from tests.support.processes import ROOT, Running
from tests.support.waiting import wait_until

MOST_WAITING = 2000
# Before there are so few nobody looks at them all.
FEW_KEYS = 200
SHORT_LIVES = {
    "AJ_RESULT_TTL_S": "1",
    "AJ_TOMBSTONE_TTL_S": "0",
    "AJ_IDEMPOTENCY_TTL_S": "1",
    "AJ_CALLBACK_SCHEDULE_S": "0",
    "AJ_CALLBACK_ALLOW": "127.0.0.1:9",
    "AJ_TASKS": "tests.support.tasks",
}
# Lists are swept by the minute.
DRAINED_WITHIN_S = 240.0


@dataclass(frozen=True, slots=True)
class Wish:
    """How many jobs, on how many workers; after so many seconds no more are submitted."""

    jobs: int
    workers: int
    most_s: float


def submit_mixed(client: FlaskClient, number: int) -> None:
    """Submits a job: one in twenty fails, one in fifty is cancelled, has a key, runs twice or owes a webhook."""
    body: dict[str, Any] = {"n": number % 100}
    if number % 20 == 1:
        body = {"task": "fail", "text": "x"}
    elif number % 50 == 2:
        body = {"task": "try_again_at_once", "fail": True}
    elif number % 50 == 3:
        body["callback_url"] = "http://127.0.0.1:9/"
    headers = {"Idempotency-Key": f"soak-{number}"} if number % 50 == 4 else {}
    answer = client.post("/jobs", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    if number % 50 == 5:
        client.post(answer.headers["Location"] + "/cancel")


def run(folder: Path, wish: Wish, say: Callable[[str], None]) -> Counter[str]:
    """What is left when the last job should be forgotten, by kind of key."""
    with start_server(folder / "store") as server:
        env = {**SHORT_LIVES, "AJ_REDIS_URL": server.url, "AJ_WORKERS": str(wish.workers)}
        store: Any = redis.Redis.from_url(server.url)
        client = create_app(Settings.from_env(env)).test_client()
        workers = Running([sys.executable, "worker.py"], env, folder / "workers.log", ROOT)
        try:
            began_s, number = monotonic_s(), 0
            while number < wish.jobs and monotonic_s() - began_s < wish.most_s:
                if number % 1000 == 0:
                    wait_until(
                        lambda: store.llen("rq:queue:q:jobs2") < MOST_WAITING, within_s=600, what="a shorter queue"
                    )
                if number % 10_000 == 0:
                    say(f"{number} jobs, {_used(store)}")
                submit_mixed(client, number)
                number += 1
            wait_until(lambda: not store.llen("rq:queue:q:jobs2"), within_s=600, what="an empty queue")
            say(f"{number} jobs submitted and run in {monotonic_s() - began_s:.0f} s, {_used(store)}")
            with contextlib.suppress(AssertionError):  # what is left says more
                wait_until(lambda: store.dbsize() < FEW_KEYS and not left_over(store, "aj"), DRAINED_WITHIN_S)
        finally:
            workers.stop()
        say(f"after the last job: {store.dbsize()} keys, {_used(store)}")
        return left_over(store, "aj")


def _used(store: Any) -> str:
    return f"{store.info('memory')['used_memory'] / 2**20:.1f} MiB"
