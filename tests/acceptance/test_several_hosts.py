"""Store, API and two workers, each on a host of its own, and a link that is cut for longer than the lease.

The processes of the host that is cut off live on all the time, on the machine that runs this test: who judged by
process ids would call them alive. Needs root and network namespaces; without them it is left out, and says why.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
import requests

from aj.local.server import find_engine
from tests.support.hosts import Host, hosts, why_not
from tests.support.inside import starts
from tests.support.processes import ROOT, Running, running
from tests.support.waiting import wait_until

LEASE_S = 3
WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@dataclass(slots=True)
class Site:
    """The deployment: where the API is, and the hosts of the two workers."""

    api: str
    env: dict[str, str]
    first: Host
    second: Host
    store: redis.Redis
    folder: Path

    def submit(self, **members: Any) -> str:
        answer = requests.post(f"{self.api}/jobs", json=members, timeout=10)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def document(self, job_id: str) -> dict[str, Any]:
        answer = requests.get(f"{self.api}/jobs/{job_id}", timeout=10)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def end_of(self, job_id: str, within_s: float = 30) -> dict[str, Any]:
        wait_until(lambda: self.document(job_id)["status"] in ("succeeded", "failed"), within_s, f"the end of {job_id}")
        return self.document(job_id)

    @contextmanager
    def worker_on(self, host: Host) -> Iterator[Running]:
        """`worker.py` there, ready to take jobs."""
        command = [*host.inside, sys.executable, "worker.py", "--only", "jobs"]
        with running(command, self.env, self.folder) as worker:
            wait_until(lambda: "Listening on" in worker.output, what="a worker that listens")
            yield worker


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    """Four hosts, with the store on one and the API on another."""
    with ExitStack() as stack:
        made = stack.enter_context(hosts("store", "api", "first", "second"))
        store_host, api_host, first, second = made
        binary = find_engine(folder, None).binary
        options = ["--port", "6379", "--bind", "*", "--requirepass", "hunter2", "--save", "", "--dir", str(folder)]
        stack.enter_context(running([*store_host.inside, str(binary), *options], {}, folder))
        store = redis.Redis(store_host.address, password="hunter2")
        wait_until(lambda: answers(store), what="a store")
        env = {
            "AJ_REDIS_URL": f"redis://:hunter2@{store_host.address}:6379/0",
            "AJ_TASKS": "tests.support.tasks,tests.support.tasks_again",
            "AJ_LEASE_S": str(LEASE_S),
        }
        command = [*api_host.inside, sys.executable, "-m", "gunicorn", "wsgi:app"]
        stack.enter_context(running(command, {**env, "AJ_HOST": "0.0.0.0"}, folder, ROOT))
        api = f"http://{api_host.address}:8140"
        wait_until(lambda: reachable(f"{api}/healthz"), what="an API")
        yield Site(api, env, first, second, store, folder)


def answers(store: redis.Redis) -> bool:
    try:
        return bool(store.ping())
    except redis.ConnectionError:
        return False


def reachable(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).status_code == 200
    except requests.ConnectionError:
        return False


def test_a_job_whose_host_is_cut_off_is_lost_and_its_late_outcome_is_fenced_off(site: Site) -> None:
    """A job without retries ends `lost`, and one with them ends on the other host; both stay as they are when the
    link is healed. The host that was cut off goes on and runs the next jobs."""
    once, again = site.folder / "once", site.folder / "again"
    with ExitStack() as stack:
        site.env["AJ_WORKERS"] = "2"
        cut_off = stack.enter_context(site.worker_on(site.first))
        wait_until(lambda: cut_off.output.count("Listening on") == 2, what="two workers on the first host")
        lost = site.submit(task="wait_for_file", path=str(once))
        repeated = site.submit(task="wait_again", path=str(again))
        wait_until(lambda: starts(once) and starts(again), what="two running jobs")
        other = stack.enter_context(site.worker_on(site.second))
        site.first.cut()
        once.touch()
        again.touch()
        found = site.end_of(lost, LEASE_S + 6)
        assert (found["status"], found["error"]["type"], found["attempt"]) == ("failed", "lost", 1)
        wait_until(lambda: len(starts(again)) == 2, LEASE_S + 6, "the second try")
        assert site.end_of(site.submit(n=5))["result"] == 25, "the other host works on"
        assert other.process.poll() is None
        assert site.end_of(repeated)["attempt"] == 2
        ends = {job_id: site.document(job_id) for job_id in (lost, repeated)}
        wait_until(lambda: "the store cannot be used" in cut_off.output, 20, "outcomes that cannot be written")
        site.first.heal()
        wait_until(lambda: cut_off.output.count("its outcome is dropped") == 2, 40, "two late outcomes")
        assert {job_id: site.document(job_id) for job_id in ends} == ends
        assert site.document(repeated)["result"] == "seen"
        other.stop()
        assert [site.end_of(site.submit(n=n))["result"] for n in (6, 7)] == [36, 49], "the host that was cut off works"
        assert cut_off.stop() == 0
        assert "Traceback" not in cut_off.output + other.output


def test_a_job_that_is_taken_as_the_link_breaks_is_not_stranded(site: Site) -> None:
    """An idle worker asks for a job and is cut off: whatever the store gave it goes back to the queue."""
    with site.worker_on(site.first), site.worker_on(site.second) as other:
        jobs: list[str] = []
        stop = threading.Event()

        def submit_on() -> None:
            while not stop.wait(0.02):
                jobs.append(site.submit(n=2))

        thread = threading.Thread(target=submit_on)
        thread.start()
        wait_until(lambda: len(jobs) > 10, what="a load")
        site.first.cut()
        count = len(jobs)
        wait_until(lambda: len(jobs) > count + 20, what="more load")
        stop.set()
        thread.join()
        ends = [site.end_of(job_id) for job_id in jobs]
        site.first.heal()
        assert other.process.poll() is None
    kinds = {each["status"] if each["status"] == "succeeded" else each["error"]["type"] for each in ends}
    assert kinds <= {"succeeded", "lost"}
    assert sum(each["status"] == "failed" for each in ends) <= 1, "the one that ran when the link broke"
    assert site.store.llen("rq:queue:q:jobs2:intermediate") == 0


def test_nothing_is_left_of_the_hosts_of_this_process() -> None:
    """Their links go with them."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    assert "far" not in links
    assert f"aj{os.getpid()}" not in links
