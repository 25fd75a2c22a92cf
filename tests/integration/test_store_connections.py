"""How many connections a web process opens to the store: a few, however many requests come at once."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aj.clock import monotonic_s
from aj.local.embedded import start_server
from aj.store.breaker import MOST_ASKERS
from tests.conftest import Deployment
from tests.support.jobs import submit
from tests.support.own_store import deployment_on, own_deployment

MANY = 120
LONGEST_S = 3.5  # the contract's 3 s for a 503, and a little for so many threads


def ask_at_once(deployment: Deployment, count: int, **changes: str) -> list[int]:
    """The statuses of as many requests through one process."""
    client = deployment.client(**changes)
    path = f"/jobs/{submit(client, n=5)}"
    with ThreadPoolExecutor(count) as pool:
        asking = [pool.submit(client.application.test_client().get, path) for _ in range(count)]
        return [each.result().status_code for each in asking]


def connections(deployment: Deployment) -> int:
    """How many the store has had so far."""
    stats: Any = deployment.redis.info("stats")
    return int(stats["total_connections_received"])


def test_a_crowd_shares_a_few_connections(folder: Path) -> None:
    """Who finds none free stands in line, and nobody is refused."""
    with own_deployment(folder / "store") as deployment:
        before = connections(deployment)
        assert set(ask_at_once(deployment, MANY)) == {200}
        assert connections(deployment) - before <= MOST_ASKERS


def test_an_operator_may_say_how_many_there_are(folder: Path) -> None:
    """As redis-py does, in the address."""
    with own_deployment(folder / "store") as deployment:
        before = connections(deployment)
        url = f"{deployment.env['AJ_REDIS_URL']}?max_connections=4"
        assert set(ask_at_once(deployment, MANY, AJ_REDIS_URL=url)) == {200}
        assert connections(deployment) - before <= 4


def test_a_crowd_before_a_store_that_hangs_is_refused_in_time(folder: Path) -> None:
    """Who stood in line is not kept as long again."""
    with start_server(folder / "store") as server:
        client = deployment_on(server).client()
        path = f"/jobs/{submit(client, n=5)}"

        def timed() -> tuple[int, float]:
            started_s = monotonic_s()
            return client.application.test_client().get(path).status_code, monotonic_s() - started_s

        os.kill(server.pid, signal.SIGSTOP)
        try:
            with ThreadPoolExecutor(MANY) as pool:
                answers = [each.result() for each in [pool.submit(timed) for _ in range(MANY)]]
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert {status for status, _ in answers} == {503}
        assert max(took_s for _, took_s in answers) < LONGEST_S
