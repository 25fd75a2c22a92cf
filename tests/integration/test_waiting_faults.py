"""Requests that are held while their subscription, or the whole store, is cut, hangs or starts anew."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from aj.clock import monotonic_s
from aj.job import Outcome
from aj.local.embedded import ServerProcess, start_server
from aj.local.server import socket_of
from tests.conftest import Deployment
from tests.support.cutting_proxy import cutting_proxy
from tests.support.inside import attempt_at
from tests.support.jobs import document, submit
from tests.support.own_store import deployment_on
from tests.support.waiting import wait_until

WAIT_S = 50
SOON_S = 25.0  # far from the end of the wait, even on a machine that is busy
WAIT = {"Prefer": f"wait={WAIT_S}"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with start_server(tmp_path / "store") as made:
        yield made


@pytest.fixture
def deployment(server: ServerProcess) -> Deployment:
    """On a server of its own, which has learnt the scripts that it is going to be asked for."""
    made = deployment_on(server)
    document(made.client(), submit(made.client(), n=5))
    return made


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(100) as made:
        yield made


Held = Future[TestResponse]


def hold(pool: ThreadPoolExecutor, deployment: Deployment, ask: Callable[[], TestResponse]) -> Held:
    """Has `ask` wait in a thread; comes back when it is subscribed and has asked the store twice."""
    before = looks(deployment)
    held = pool.submit(ask)
    wait_until(lambda: looks(deployment) >= before + 2 and subscribers(deployment), what="a waiting request")
    return held


def calls(deployment: Deployment) -> dict[str, int]:
    """How often each command was called, the questions of the tests left out."""
    stats: Any = deployment.redis.info("commandstats")
    asked = {name.removeprefix("cmdstat_"): int(each["calls"]) for name, each in stats.items()}
    return {name: count for name, count in asked.items() if name not in ("info", "pubsub|numsub")}


def looks(deployment: Deployment) -> int:
    """How many scripts were called."""
    return calls(deployment).get("evalsha", 0)


def subscribers(deployment: Deployment) -> int:
    counts: Any = deployment.redis.pubsub_numsub(f"{deployment.settings.prefix}:changes")
    return int(counts[0][1])


def end(deployment: Deployment, job_id: str) -> None:
    attempt = attempt_at(deployment, job_id, "e")
    attempt.start([])
    attempt.decide(Outcome.succeeded(b"25"))
    attempt.end([])


def write_progress(deployment: Deployment, job_id: str) -> None:
    """Behind everybody's back."""
    deployment.redis.hset(f"{deployment.settings.prefix}:job:{job_id}", "progress", '{"fraction": 0.5}')


def test_a_hundred_who_wait_ask_the_store_nothing(deployment: Deployment, pool: ThreadPoolExecutor) -> None:
    """One question a second keeps the subscription of the process alive, and that is all that the store hears."""
    client = deployment.client(AJ_WEB_THREADS="200")
    job_id = submit(client, n=5)
    new = client.application.test_client
    held = [hold(pool, deployment, lambda: new().get(f"/jobs/{job_id}", headers=WAIT))]
    wait_until(lambda: calls(deployment).get("ping"), what="a first question")
    alone = looks(deployment)
    held += [pool.submit(new().get, f"/jobs/{job_id}", headers=WAIT) for _ in range(99)]
    wait_until(lambda: looks(deployment) == alone + 2 * 99, what="a hundred waiting requests")
    before = calls(deployment)
    wait_until(lambda: calls(deployment)["ping"] >= before["ping"] + 3, what="three more questions")
    asked = calls(deployment)
    assert {**asked, "ping": 0} == {**before, "ping": 0}
    assert subscribers(deployment) == 1
    end(deployment, job_id)
    assert {each.result(SOON_S).status_code for each in held} == {200}
    assert {(each.result().json or {})["status"] for each in held} == {"succeeded"}


def test_a_change_that_was_told_to_nobody_is_seen_after_a_cut(deployment: Deployment, pool: ThreadPoolExecutor) -> None:
    """A renewed subscription has everybody look; here at a change of which nobody was told."""
    client = deployment.client()
    job_id = submit(client, n=5)
    known = {**WAIT, "If-None-Match": client.get(f"/jobs/{job_id}").headers["ETag"]}
    held = hold(pool, deployment, lambda: client.get(f"/jobs/{job_id}", headers=known))
    write_progress(deployment, job_id)
    deployment.redis.client_kill_filter(_type="pubsub")
    assert (held.result(SOON_S).json or {})["progress"] == {"fraction": 0.5}


def test_a_wait_ends_with_a_look(deployment: Deployment, pool: ThreadPoolExecutor) -> None:
    """So even a change of which nobody is ever told is in the answer."""
    client = deployment.client()
    job_id = submit(client, n=5)
    known = {"Prefer": "wait=4", "If-None-Match": client.get(f"/jobs/{job_id}").headers["ETag"]}
    held = hold(pool, deployment, lambda: client.get(f"/jobs/{job_id}", headers=known))
    write_progress(deployment, job_id)
    assert (held.result(SOON_S).json or {})["progress"] == {"fraction": 0.5}


def test_a_change_that_was_told_to_a_dead_connection_is_seen(
    server: ServerProcess, deployment: Deployment, pool: ThreadPoolExecutor
) -> None:
    """As behind a firewall that has forgotten it: no error comes, and no word."""
    with cutting_proxy(socket_of(server.folder)) as proxy:
        client = deployment.client(AJ_REDIS_URL=proxy.url)
        job_id = submit(client, n=5)
        held = hold(pool, deployment, lambda: client.get(f"/jobs/{job_id}", headers=WAIT))
        proxy.hush()
        end(deployment, job_id)
        assert (held.result(SOON_S).json or {})["status"] == "succeeded"


@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_a_store_that_is_lost_ends_the_waits(
    server: ServerProcess, deployment: Deployment, pool: ThreadPoolExecutor, how: str
) -> None:
    """503 for a status; an accepted submission stays accepted; both long before the wait is over.

    When the store is back, changes are told again.
    """
    client = deployment.client()
    new = client.application.test_client
    known = submit(client, n=5)
    status = hold(pool, deployment, lambda: new().get(f"/jobs/{known}", headers=WAIT))
    short = hold(pool, deployment, lambda: new().get(f"/jobs/{known}", headers={"Prefer": "wait=2"}))
    posted = hold(pool, deployment, lambda: new().post("/jobs", json={"n": 6}, headers=WAIT))
    begun_s = monotonic_s()
    os.kill(server.pid, signal.SIGSTOP if how == "frozen" else signal.SIGKILL)
    try:
        for each in (status, short):
            answer = each.result(SOON_S)
            assert answer.status_code == 503
            assert (answer.json or {})["type"].endswith("store-unavailable")
        accepted = posted.result(SOON_S)
        assert accepted.status_code == 202
        assert "Preference-Applied" not in accepted.headers
        assert monotonic_s() - begun_s < SOON_S
    finally:
        if how == "frozen":
            os.kill(server.pid, signal.SIGCONT)
    with start_server(server.folder) if how == "killed" else server:
        wait_until(lambda: client.get(f"/jobs/{known}").status_code == 200, what="the client's recovery")
        job_id = (accepted.json or {})["job_id"]
        assert client.get(f"/jobs/{job_id}").status_code == 200
        held = hold(pool, deployment, lambda: new().get(f"/jobs/{job_id}", headers=WAIT))
        end(deployment, job_id)
        assert (held.result(SOON_S).json or {})["status"] == "succeeded"
