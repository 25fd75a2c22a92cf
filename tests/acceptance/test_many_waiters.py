"""Five hundred requests are held open by two web processes, and the others hardly notice."""

from __future__ import annotations

import json
import select
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import requests

from aj.clock import monotonic_s
from aj.job import Outcome
from aj.worker.attempt import JobAttempt
from tests.conftest import Deployment
from tests.support.inside import attempt_at
from tests.support.jobs import document, submit
from tests.support.own_store import own_deployment
from tests.support.processes import running_api
from tests.support.waiting import wait_until

ON_STATUS, ON_SUBMISSION = 450, 50
WAIT_S = 60
WAIT = {"Prefer": f"wait={WAIT_S}"}
PER_PROCESS = 300
WAKES = 100
QUIET_S = 0.3
# The goal is 20 ms on a quiet machine.
TYPICAL_WAKE_S = 0.1
# Far from the end of a wait, however busy the machine is.
PROMPT_S = 10.0


class Held:
    """A request that was sent over a connection of its own, and whose answer may be long in coming."""

    def __init__(self, url: str, method: str, path: str, members: object = None) -> None:
        self._connection = HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
        headers = WAIT if members is None else {**WAIT, "Content-Type": "application/json"}
        self._connection.request(method, path, None if members is None else json.dumps(members), headers)

    def fileno(self) -> int:
        return self._connection.sock.fileno()

    def hang_up(self) -> None:
        self._connection.close()

    def is_answered(self) -> bool:
        return bool(select.select([self], [], [], 0)[0])

    def answer(self) -> tuple[HTTPResponse, Any]:
        """Waits for the answer; gives its head and its document."""
        answer = self._connection.getresponse()
        body = json.loads(answer.read())
        self._connection.close()
        return answer, body


@pytest.fixture
def deployment(folder: Path) -> Iterator[Deployment]:
    """On a server of its own, so that what it was asked can be counted."""
    with own_deployment(folder / "store") as made:
        document(made.client(), submit(made.client(), n=5))
        yield made


def looks(deployment: Deployment) -> int:
    stats: Any = deployment.redis.info("commandstats")
    return int(stats["cmdstat_evalsha"]["calls"])


def queued(deployment: Deployment) -> set[str]:
    entries: Any = deployment.redis.lrange(f"rq:queue:{deployment.queue}", 0, -1)
    return {each.decode() for each in entries}


def hold(deployment: Deployment, starts: Sequence[Callable[[], Held]]) -> list[Held]:
    """Starts requests until each of them is held. One that meets a process that is full is sent again."""
    asked = looks(deployment)
    held = [start() for start in starts]
    # Each asks the store twice, the last time as one that waits; then nobody asks for anything.
    enough, last, quiet_since_s = asked + 2 * len(starts), asked, monotonic_s()

    def all_held() -> bool:
        nonlocal enough, last, quiet_since_s
        for at, each in enumerate(held):
            if each.is_answered():
                answer, _ = each.answer()
                assert answer.status in (200, 202)
                assert "Preference-Applied" not in answer.headers
                held[at] = starts[at]()
                enough += 1
        now = looks(deployment)
        if now != last:
            last, quiet_since_s = now, monotonic_s()
        return now >= enough and monotonic_s() - quiet_since_s > QUIET_S

    wait_until(all_held, 60, "requests that are held")
    return held


def ended(deployment: Deployment, job_id: str) -> JobAttempt:
    """The try of a job that has run, and of whose end nobody has been told."""
    attempt = attempt_at(deployment, job_id, "e")
    attempt.start([])
    attempt.decide(Outcome.succeeded(b"25"))
    return attempt


@contextmanager
def ordinary_requests(url: str) -> Iterator[list[float]]:
    """Submissions and looks of callers who do not wait, one after the other, and how long each of them took."""
    took_s: list[float] = []
    over: list[bool] = []

    def ask(method: str, path: str, expected: int, **options: Any) -> Any:
        started_s = monotonic_s()
        answer = requests.request(method, url + path, timeout=WAIT_S, **options)
        took_s.append(monotonic_s() - started_s)
        assert answer.status_code == expected
        return answer.json()

    def go_on() -> None:
        while not over:
            job_id = ask("POST", "/jobs", 202, json={"n": 5})["job_id"]
            assert ask("GET", f"/jobs/{job_id}", 200)["status"] == "queued"

    with ThreadPoolExecutor(2) as pool:
        going_on = [pool.submit(go_on) for _ in range(2)]
        try:
            yield took_s
        finally:
            over.append(True)
        for each in going_on:
            each.result()


def test_five_hundred_requests_wait_while_others_are_answered(deployment: Deployment, folder: Path) -> None:
    """Each gets the final document of its own job as soon as that has ended."""
    client = deployment.client()
    waiting_for = [submit(client, n=5) for _ in range(ON_STATUS)]
    known = queued(deployment)
    wakes_s: list[float] = []
    with running_api(deployment.env, folder) as (_, url):
        starts = [partial(Held, url, "GET", f"/jobs/{job_id}") for job_id in waiting_for]
        starts += [partial(Held, url, "POST", "/jobs", {"n": 5})] * ON_SUBMISSION
        held = hold(deployment, starts)
        submitted = queued(deployment) - known
        with ordinary_requests(url) as took_s:
            wait_until(lambda: len(took_s) >= 200, 60, "ordinary requests")
            assert not any(map(Held.is_answered, held))
        for each, job_id in zip(held[:WAKES], waiting_for, strict=False):
            attempt = ended(deployment, job_id)
            changed_s = monotonic_s()
            attempt.end([])
            answer, told = each.answer()
            wakes_s.append(monotonic_s() - changed_s)
            assert (answer.status, told["job_id"], told["status"], told["result"]) == (200, job_id, "succeeded", 25)
            assert answer.headers["Preference-Applied"] == f"wait={WAIT_S}"
        for job_id in (*waiting_for[WAKES:], *submitted):
            ended(deployment, job_id).end([])
        answers = [each.answer() for each in held[WAKES:]]
    assert {(answer.status, told["status"]) for answer, told in answers} == {(200, "succeeded")}
    assert {answer.headers["Preference-Applied"] for answer, _ in answers} == {f"wait={WAIT_S}"}
    assert {told["job_id"] for _, told in answers} <= {*waiting_for[WAKES:], *submitted}
    assert len({told["job_id"] for _, told in answers}) == len(answers)
    assert max(took_s) < PROMPT_S
    assert statistics.median(wakes_s) < TYPICAL_WAKE_S


def test_who_comes_after_the_last_place_is_answered_at_once(deployment: Deployment, folder: Path) -> None:
    """The places are half of the process's threads; the other half serves everybody."""
    job_id = submit(deployment.client(), n=5)
    with running_api({**deployment.env, "AJ_WEB_WORKERS": "1"}, folder) as (_, url):
        held = hold(deployment, [partial(Held, url, "GET", f"/jobs/{job_id}")] * PER_PROCESS)
        for method, path, members, expected in (
            ("GET", f"/jobs/{job_id}", None, 200),
            ("POST", "/jobs", {"n": 5}, 202),
        ):
            for late in [Held(url, method, path, members) for _ in range(20)]:
                answer, told = late.answer()
                assert (answer.status, told["status"]) == (expected, "queued")
                assert "Preference-Applied" not in answer.headers
        with ordinary_requests(url) as took_s:
            wait_until(lambda: len(took_s) >= 20, 60, "ordinary requests")
        assert not any(map(Held.is_answered, held))
        ended(deployment, job_id).end([])
        assert {told["status"] for _, told in (each.answer() for each in held)} == {"succeeded"}
    assert max(took_s) < PROMPT_S


def test_a_server_that_stops_lets_those_who_wait_go(deployment: Deployment, folder: Path) -> None:
    """With what there is, and soon: cut off after gunicorn's own patience they would know nothing."""
    client = deployment.client()
    waiting_for = [submit(client, n=5) for _ in range(20)]
    with running_api(deployment.env, folder) as (server, url):
        starts = [partial(Held, url, "GET", f"/jobs/{job_id}") for job_id in waiting_for]
        held = hold(deployment, [*starts, *[partial(Held, url, "POST", "/jobs", {"n": 5})] * 5])
        stopped_s = monotonic_s()
        server.process.terminate()
        answers = [each.answer() for each in held]
        assert monotonic_s() - stopped_s < PROMPT_S
        assert [(answer.status, told["status"]) for answer, told in answers] == [(200, "queued")] * 20 + [
            (202, "queued")
        ] * 5
        assert server.process.wait(WAIT_S) == 0


def test_who_hangs_up_gives_the_place_to_another(deployment: Deployment, folder: Path) -> None:
    """Clients whose network breaks come again and again; each would hold a place for the whole of its wait."""
    job_id = submit(deployment.client(), n=5)
    env = {**deployment.env, "AJ_WEB_WORKERS": "1", "AJ_WEB_THREADS": "4"}
    with running_api(env, folder) as (_, url):
        wait = partial(Held, url, "GET", f"/jobs/{job_id}")
        for each in hold(deployment, [wait] * 2):
            each.hang_up()
        hung_up_s = monotonic_s()
        last = hold(deployment, [wait])[0]
        assert monotonic_s() - hung_up_s < WAIT_S / 2, "long before their wait would have been over"
        ended(deployment, job_id).end([])
        answer, told = last.answer()
        assert (told["status"], answer.headers["Preference-Applied"]) == ("succeeded", f"wait={WAIT_S}")
