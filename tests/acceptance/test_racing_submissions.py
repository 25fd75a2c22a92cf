"""Many submissions with one key at the same moment, over several processes: one job, and every caller is content."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.conftest import Deployment
from tests.support.processes import running_api

RACERS = 60


@pytest.mark.parametrize(("servers", "workers"), [(1, "2"), (2, "1")], ids=["two workers", "two servers"])
def test_racing_submissions_with_one_key_make_one_job(
    deployment: Deployment, folder: Path, servers: int, workers: str
) -> None:
    """60 at once over two processes: 60 times the same 202, 59 of them replays, one entry in the queue."""
    with ExitStack() as stack:
        env = {**deployment.env, "AJ_WEB_WORKERS": workers}
        urls = [stack.enter_context(running_api(env, folder))[1] for _ in range(servers)]
        answers = race([post(urls[n % servers], "k", n=5) for n in range(RACERS)])
    assert [answer.status_code for answer in answers] == [202] * RACERS
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert sum(answer.headers.get("Idempotent-Replayed") == "true" for answer in answers) == RACERS - 1
    job_id = answers[0].json()["job_id"]
    assert deployment.redis.lrange(f"rq:queue:{deployment.queue}", 0, -1) == [job_id.encode()]
    assert len(deployment.keys("job:*")) == 1
    assert f"queue {deployment.queue} 1," in rq_info(deployment)


def test_racing_payloads_under_one_key_have_one_winner(deployment: Deployment, folder: Path) -> None:
    """Whichever came first has the key: all of its kind are replays, all of the other kind are refused."""
    with running_api({**deployment.env, "AJ_WEB_WORKERS": "2"}, folder) as (_, url):
        answers = race([post(url, "k", n=n % 2) for n in range(RACERS)])
        kinds = [{answer.status_code for answer in answers[kind::2]} for kind in (0, 1)]
        assert sorted(kinds, key=str) == [{202}, {422}]
        assert len({answer.json()["job_id"] for answer in answers if answer.status_code == 202}) == 1
    assert deployment.queued() == 1


def test_racing_submissions_with_keys_of_their_own_are_all_queued(deployment: Deployment, folder: Path) -> None:
    """Nobody loses a race that is none."""
    with running_api({**deployment.env, "AJ_WEB_WORKERS": "2"}, folder) as (_, url):
        answers = race([post(url, f"k{n}", n=5) for n in range(RACERS)])
    ids = {answer.json()["job_id"].encode() for answer in answers}
    entries: Any = deployment.redis.lrange(f"rq:queue:{deployment.queue}", 0, -1)
    assert len(ids) == RACERS
    assert sorted(entries) == sorted(ids)
    assert f"queue {deployment.queue} {RACERS}," in rq_info(deployment)


def post(url: str, key: str, **members: Any) -> Callable[[], requests.Response]:
    """A submission that waits to be made."""
    headers = {"Idempotency-Key": key, "Connection": "close"}
    return lambda: requests.post(f"{url}/jobs", json=members, headers=headers, timeout=30)


def race(starts: list[Callable[[], requests.Response]]) -> list[requests.Response]:
    """Has all start at once, each in a thread of its own; gives the answers in the order of `starts`."""
    gate = threading.Barrier(len(starts))

    def run(start: Callable[[], requests.Response]) -> requests.Response:
        gate.wait()
        return start()

    with ThreadPoolExecutor(len(starts)) as pool:
        return list(pool.map(run, starts))


def rq_info(deployment: Deployment) -> str:
    """What RQ's own command says of the deployment's queues."""
    program = Path(sys.executable).with_name("rq")
    command = [
        str(program),
        "info",
        "--url",
        deployment.env["AJ_REDIS_URL"],
        "--raw",
        "--only-queues",
        deployment.queue,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout
