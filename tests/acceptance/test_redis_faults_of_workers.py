"""The store breaks under a worker process with jobs that run and jobs that wait: nothing ends in silence.

Nobody restarts anything here. A job that ended meanwhile is written when the store returns, or ends `lost`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
import requests
from flask.testing import FlaskClient
from rq.command import send_stop_job_command
from rq.exceptions import InvalidJobOperation

from aj.local.embedded import ServerProcess, start_server
from aj.local.server import socket_of, url_of
from aj.settings import Settings
from tests.conftest import Deployment
from tests.support.inside import starts, wait_for_end
from tests.support.jobs import document, submit
from tests.support.own_store import deployment_on
from tests.support.processes import ROOT, Running, clean_env, free_port, running, running_api, running_worker
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

LEASE_S = 3
WAITING = 4


@dataclass(slots=True)
class Broken:
    """A store of its own, which a test breaks and mends."""

    server: ServerProcess
    deployment: Deployment

    def start(self) -> None:
        self.server = start_server(self.server.folder)

    def start_empty(self) -> None:
        shutil.rmtree(self.server.folder)
        self.start()

    def config(self, **options: str) -> None:
        for name, value in options.items():
            self.deployment.redis.config_set(name.replace("_", "-"), value)


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Broken]:
    server = start_server(tmp_path / "store")
    it = Broken(server, deployment_on(server, AJ_LEASE_S=str(LEASE_S), AJ_CALLBACK_ALLOW="127.0.0.0/8"))
    yield it
    it.server.stop()


Step = Callable[[Broken], object]
FAULTS: dict[str, tuple[Step, Step]] = {
    "killed": (lambda it: it.server.kill(), Broken.start),
    "frozen": (
        lambda it: os.kill(it.server.pid, signal.SIGSTOP),
        lambda it: os.kill(it.server.pid, signal.SIGCONT),
    ),
    "out of memory": (lambda it: it.config(maxmemory="1"), lambda it: it.config(maxmemory="0")),
    "read-only": (
        lambda it: it.deployment.redis.replicaof("127.0.0.1", "1"),
        lambda it: it.deployment.redis.replicaof("NO", "ONE"),
    ),
}


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def children_of(worker: Running) -> list[int]:
    return sorted(worker.children())


@pytest.mark.parametrize("fault", FAULTS)
def test_no_job_and_no_webhook_is_lost_to_a_store_that_breaks_for_longer_than_the_lease(
    broken: Broken, fault: str, receiver: Receiver, folder: Path
) -> None:
    """What ran ends with its result, what waited runs, each webhook arrives, and every process is still the same."""
    break_it, mend_it = FAULTS[fault]
    client, path = broken.deployment.client(), folder / "go"
    with running_worker(broken.deployment.env, folder) as worker:
        children = children_of(worker)
        hook = receiver.url()
        ran = submit(client, task="wait_for_file", path=str(path), callback_url=hook)
        wait_until(lambda: starts(path), what="a running job")
        waited = [submit(client, n=n, callback_url=hook) for n in range(WAITING)]
        break_it(broken)
        path.touch()
        pause(LEASE_S + 1)
        mend_it(broken)
        found = wait_until(lambda: ended(client, ran), 30, "the end of the job that ran")
        assert found.get("result", found.get("error", {}).get("type")) in ("seen", "lost")
        assert [wait_for_end(client, job_id)["result"] for job_id in waited] == [n * n for n in range(WAITING)]
        wait_until(lambda: len(receiver.received) >= 1 + WAITING, 30, "all webhooks")
        assert children_of(worker) == children
        assert len(starts(path)) == 1
        assert "Traceback" not in worker.output
        assert worker.stop() == 0


def ended(client: FlaskClient, job_id: str) -> dict[str, Any] | None:
    """The job's document once the store answers and the job has ended."""
    answer = client.get(f"/jobs/{job_id}")
    assert answer.status_code in (200, 503)
    found = dict(answer.json or {})
    return found if found.get("status") in ("succeeded", "failed") else None


def test_a_store_that_comes_back_empty_is_used_as_if_it_were_new(
    broken: Broken, receiver: Receiver, folder: Path
) -> None:
    """Ids that were given before are unknown, and a key brings a new job. The same processes go on: RQ lists the
    worker again, hears its commands, and webhooks arrive."""
    client, path, later = broken.deployment.client(), folder / "go", folder / "later"
    with running_worker(broken.deployment.env, folder) as worker:
        children = children_of(worker)
        forgotten = [submit(client, task="wait_for_file", path=str(path)), submit(client, key="k", n=5)]
        wait_until(lambda: starts(path), what="a running job")
        broken.server.stop()
        path.touch()
        broken.start_empty()
        wait_until(lambda: client.get("/readyz").status_code == 200, 30, "a worker that is registered again")
        assert [client.get(f"/jobs/{job_id}").status_code for job_id in forgotten] == [404, 404]
        fresh = submit(client, key="k", n=5, callback_url=receiver.url())
        assert fresh not in forgotten
        assert wait_for_end(client, fresh)["result"] == 25
        wait_until(lambda: receiver.received, what="the webhook")
        assert "idle" in rq_info(broken.deployment)
        job_id = submit(client, task="wait_for_file", path=str(later))
        wait_until(lambda: starts(later), what="a job to be stopped")

        def stopped() -> bool:
            if document(client, job_id)["status"] == "running":
                with suppress(InvalidJobOperation):  # it has ended meanwhile
                    send_stop_job_command(broken.deployment.redis, job_id)
            return bool(document(client, job_id)["status"] == "failed")

        wait_until(stopped, 15, "RQ's command to be heard")
        assert document(client, job_id)["error"]["type"] == "cancelled"
        assert children_of(worker) == children
        assert "Traceback" not in worker.output


def test_a_worker_that_rq_has_taken_for_dead_is_listed_again(broken: Broken, folder: Path) -> None:
    """It was cut off for so long that its key expired and another worker cleaned up."""
    with running_worker(broken.deployment.env, folder, "--only", "jobs"):
        [key] = wait_until(lambda: broken.deployment.redis.smembers("rq:workers"), what="a registered worker")
        broken.deployment.redis.delete("rq:workers", "rq:workers:q:jobs2", key)
        wait_until(lambda: re.search(r"^worker \S+ \(\S+ \S+ \d+\) idle q:jobs2", rq_info(broken.deployment), re.M), 10)


def rq_info(deployment: Deployment) -> str:
    command = [sys.executable, "-m", "rq.cli", "info", "-u", deployment.env["AJ_REDIS_URL"], "--raw"]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout


def test_scripts_that_the_store_forgets_are_taught_again(broken: Broken, folder: Path) -> None:
    """SCRIPT FLUSH under a running worker process, and its next jobs run."""
    client = broken.deployment.client()
    with running_worker(broken.deployment.env, folder) as worker:
        for n in range(5):
            broken.deployment.redis.script_flush()
            assert wait_for_end(client, submit(client, n=n))["result"] == n * n
        assert "Traceback" not in worker.output


def test_a_worker_whose_registration_was_cut_off_registers_again(broken: Broken) -> None:
    """RQ would refuse the name that the first try left behind."""
    worker = broken.deployment.worker()
    worker.register_birth()
    worker.register_birth()
    assert broken.deployment.redis.scard("rq:workers") == 1


@pytest.mark.parametrize("error", [redis.TimeoutError("frozen"), redis.ConnectionError("cut")])
def test_a_worker_listens_for_commands_again_after_any_error(
    broken: Broken, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ's own handler lets the thread die where the store does not answer in time."""
    monkeypatch.setattr("aj.worker.loop.LISTEN_AGAIN_S", 0)
    worker = broken.deployment.worker()
    worker.subscribe()
    thread: Any = worker.pubsub_thread
    fail_once = iter([error])

    def fail_then_read(*arguments: Any, **options: Any) -> Any:
        for each in fail_once:
            raise each
        return read(*arguments, **options)

    read = thread.pubsub.get_message
    thread.pubsub.get_message = fail_then_read
    broken.deployment.redis.publish(worker.pubsub_channel_name, "no command")
    wait_until(lambda: next(fail_once, None) is None, what="the error")
    assert thread.is_alive()
    worker.unsubscribe()  # type: ignore[no-untyped-call]


# -- starting ------------------------------------------------------------------------------------------------


@pytest.fixture
def away(tmp_path: Path) -> Deployment:
    """A deployment whose store is to be started later, in the folder `store`."""
    env = {"AJ_REDIS_URL": url_of(tmp_path / "store"), "AJ_TASKS": "tests.support.tasks"}
    server = start_server(tmp_path / "store")
    server.stop()
    return Deployment(Settings.from_env(env), env, deployment_on(server).redis)


def test_a_worker_that_starts_before_the_store_waits_for_it(away: Deployment, tmp_path: Path) -> None:
    """One line for each try, with growing pauses and no traceback; the same processes then run the jobs."""
    command = [sys.executable, "worker.py", "--only", "jobs"]
    with running(command, away.env, tmp_path) as worker:
        wait_until(lambda: worker.output.count("aj.worker: the store cannot be used") >= 4, what="four tries")
        children = children_of(worker)
        tries = re.findall(r"trying again in (\S+) s", worker.output)
        assert tries[:4] == ["0.1", "0.2", "0.4", "0.8"]
        assert "Traceback" not in worker.output
        with start_server(tmp_path / "store"):
            client = away.client()
            assert wait_for_end(client, submit(client, n=5))["result"] == 25
            assert children_of(worker) == children
            assert worker.stop() == 0


def test_an_api_that_starts_before_the_store_answers_503_until_it_comes(away: Deployment, tmp_path: Path) -> None:
    """It serves from the start, and says when to come again."""
    with running_api(away.env, tmp_path) as (api, url):
        answer = requests.post(f"{url}/jobs", json={"n": 5}, timeout=5)
        assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
        assert int(answer.headers["Retry-After"]) >= 1
        assert requests.get(f"{url}/readyz", timeout=5).json()["checks"] == {"store": "cannot be reached"}
        with start_server(tmp_path / "store"):
            assert requests.post(f"{url}/jobs", json={"n": 5}, timeout=5).status_code == 202
        assert "Traceback" not in api.output


@pytest.mark.parametrize(
    "command",
    [["worker.py"], ["worker.py", "--only", "deliveries"], ["-m", "gunicorn", "wsgi:app"]],
    ids=["worker", "deliveries", "gunicorn"],
)
def test_a_store_that_evicts_is_refused_at_start(broken: Broken, command: list[str]) -> None:
    """Exit code 2 and one line of ours, with the command that mends it; after that the start succeeds."""
    broken.config(maxmemory_policy="allkeys-lru")
    done = subprocess.run(
        [sys.executable, *command],
        env=clean_env({**broken.deployment.env, "AJ_PORT": str(free_port())}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("[")]
    assert len(said) == 1, said
    assert said[0].startswith("aj: ")
    assert "maxmemory-policy is allkeys-lru" in said[0]
    assert "redis-cli CONFIG SET maxmemory-policy noeviction" in said[0]
    assert done.returncode == 2


def test_a_store_that_comes_late_and_evicts_is_refused_too(broken: Broken, tmp_path: Path) -> None:
    """It could not be judged when the worker started. What comes here is the name by which it is found."""
    late = tmp_path / "late.sock"
    env = {**broken.deployment.env, "AJ_REDIS_URL": f"unix://{late}"}
    broken.config(maxmemory_policy="allkeys-lru")
    with running([sys.executable, "worker.py", "--only", "jobs"], env, tmp_path) as worker:
        wait_until(lambda: "trying again" in worker.output, what="a worker that waits")
        late.symlink_to(socket_of(broken.server.folder))
        assert wait_until(worker.process.poll, 20, "the end of the worker") == 2
        assert "redis-cli CONFIG SET maxmemory-policy noeviction" in worker.output
