"""`aj.client` with the network cut at every byte of a submission and of a look: one job, and the right result."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from aj.client import Client, Job
from aj.local.embedded import ServerProcess
from tests.support.http_cutter import HttpCutter, http_cutter
from tests.support.processes import running_api, running_worker
from tests.support.waiting import wait_until

SIDES = 8  # so many cuts at a time, since each one takes the pause before the next attempt
SPARE_BYTES = 4  # a number, or a date, may be longer than that of the first exchange; a cut beyond the end cuts nothing


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


@dataclass(frozen=True, slots=True)
class Scene:
    """The API itself, and ways to it that can be cut."""

    env: dict[str, str]
    url: str
    cutters: list[HttpCutter]

    def at_every_byte(self, ask: Callable[[HttpCutter, int], Job]) -> dict[int, Job]:
        """What `ask` brings with each cut, by the number that it is given, which is another one each time.

        Where the exchange ends is learnt from one that is not cut, and has the number 0.
        """
        first, asked = self.cutters[0], {}
        sent_before, heard_before = first.request_bytes, first.answer_bytes
        asked[0] = ask(first, 0)
        cuts = [("request_bytes", at) for at in range(first.request_bytes - sent_before + SPARE_BYTES)]
        cuts += [("answer_bytes", at) for at in range(first.answer_bytes - heard_before + SPARE_BYTES)]
        assert len(cuts) > 400
        before = sum(cutter.connections for cutter in self.cutters)

        def on_one_side(side: int) -> None:
            for number in range(side, len(cuts), SIDES):
                which, at = cuts[number]
                self.cutters[side].cut_next(**{which: at})
                asked[number + 1] = ask(self.cutters[side], number + 1)

        with ThreadPoolExecutor(SIDES) as pool:
            list(pool.map(on_one_side, range(SIDES)))
        cut = sum(cutter.connections for cutter in self.cutters) - before - len(cuts)
        assert cut >= len(cuts) - 4 * SPARE_BYTES
        return asked


@pytest.fixture(scope="module")
def scene(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("cut")
    env = {"AJ_REDIS_URL": store.url, "AJ_PREFIX": "cut", "AJ_QUEUES": "q:cut", "AJ_TASKS": "tests.support.tasks"}
    with (
        running_api(env, folder) as (_, url),
        running_worker(env, folder),
        contextlib.ExitStack() as stack,
    ):
        yield Scene(env, url, [stack.enter_context(http_cutter(port_of(url))) for _ in range(SIDES)])


def test_a_submission_that_is_cut_anywhere_makes_one_job(scene: Scene) -> None:
    """Before the request, in it, after it, in the head and the body of the answer: each job once, with its result."""

    def submit(cutter: HttpCutter, number: int) -> Job:
        with Client(cutter.url) as client:
            return client.submit(n=number)

    jobs = scene.at_every_byte(submit)
    assert {number: job.result() for number, job in jobs.items()} == {number: number**2 for number in jobs}
    assert sorted(job.id for job in Client(scene.url).jobs()) == sorted(job.id for job in jobs.values())


def test_a_look_that_is_cut_anywhere_brings_the_result(scene: Scene) -> None:
    """The end of a job is heard of all the same, and it is the right one."""
    ended = Client(scene.url).submit(n=12_345).wait()

    def look(cutter: HttpCutter, _: int) -> Job:
        with Client(cutter.url) as client:
            return client.job(ended.id).wait()

    assert all(job.document == ended.document for job in scene.at_every_byte(look).values())


def test_a_wait_sits_out_a_server_that_is_killed_and_another_that_comes_up(scene: Scene, folder: Path) -> None:
    """The held look breaks, nobody answers for a while, and the next server tells the end."""
    with running_api(scene.env, folder) as (first, url), http_cutter(port_of(url)) as way, ThreadPoolExecutor() as pool:
        job = Client(way.url).submit(task="wait_for_file", path=str(folder / "gate"))
        submitted_bytes = way.request_bytes
        waited = pool.submit(job.wait, timeout_s=60)
        wait_until(lambda: way.request_bytes > submitted_bytes, what="a look")
        for pid in [first.pid, *first.children()]:
            os.kill(pid, signal.SIGKILL)
        refused = way.connections
        wait_until(lambda: way.connections > refused + 2, what="attempts that nobody answers")
        (folder / "gate").touch()
        way.port = port_of(scene.url)
        assert waited.result(30).result() == "seen"
