"""Readiness tells each trouble apart, quickly, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rq
from flask.testing import FlaskClient

from aj.clock import monotonic_s
from aj.errors import SettingsError
from aj.local.embedded import ServerProcess, start_server
from aj.local.server import find_engine
from aj.store import connect, refuse_unfit
from aj.store.health import MEANINGS
from aj.worker.loop import WORKER_LIFE_S
from tests.conftest import Deployment
from tests.support.jobs import submit
from tests.support.own_store import all_that_is_stored, deployment_on
from tests.support.processes import ROOT, free_port, running
from tests.support.waiting import wait_until

LONGEST_S = 3.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with start_server(tmp_path / "store") as started:
        yield started


@pytest.fixture
def alone(server: ServerProcess) -> Deployment:
    """A deployment on a server of its own, with a worker that RQ knows."""
    deployment = deployment_on(server)
    register(deployment)
    return deployment


def register(deployment: Deployment, **changes: str) -> str:
    """Registers a worker, and gives its key."""
    worker = deployment.worker(**changes)
    worker.register_birth()
    worker.heartbeat()
    return str(worker.key)


def checks(client: FlaskClient) -> dict[str, str]:
    """What is wrong, by name; asked within the 3 s of the contract."""
    started_s = monotonic_s()
    answer = client.get("/readyz")
    assert monotonic_s() - started_s < LONGEST_S
    assert answer.headers["Cache-Control"] == "no-store"
    found: Any = answer.json
    if answer.status_code == 200:
        assert found == {"status": "ready"}
        return {}
    assert answer.status_code == 503
    assert found["type"] == "urn:problem-type:aj:not-ready"
    assert int(answer.headers["Retry-After"]) >= 1
    return dict(found["checks"])


def freeze(server: ServerProcess, deployment: Deployment) -> None:
    os.kill(server.pid, signal.SIGSTOP)


def follow_nobody(server: ServerProcess, deployment: Deployment) -> None:
    deployment.redis.replicaof("127.0.0.1", "1")


def follow_nobody_silently(server: ServerProcess, deployment: Deployment) -> None:
    deployment.redis.config_set("replica-serve-stale-data", "no")
    deployment.redis.replicaof("127.0.0.1", "1")


def set_option(name: str, value: str) -> Callable[[ServerProcess, Deployment], object]:
    return lambda _, deployment: deployment.redis.config_set(name, value)


TROUBLES: dict[str, tuple[Callable[[ServerProcess, Deployment], object], dict[str, str]]] = {
    "away": (lambda server, _: server.stop(), {"store": "cannot be reached"}),
    "hung": (freeze, {"store": "does not answer in time"}),
    "a replica": (follow_nobody, {"store": "is a read-only replica"}),
    "a replica without a master": (follow_nobody_silently, {"store": "is a replica that has lost its master"}),
    "out of memory": (set_option("maxmemory", "1"), {"store": "is out of memory"}),
    "too few replicas": (set_option("min-replicas-to-write", "1"), {"store": "refuses to work: NOREPLICAS"}),
    "password": (set_option("requirepass", "hunter2"), {"store": "refuses the user or the password"}),
    "evicting": (
        set_option("maxmemory-policy", "allkeys-lru"),
        {"eviction": "maxmemory-policy is allkeys-lru; it must be noeviction"},
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_trouble_has_words_of_its_own(server: ServerProcess, alone: Deployment, trouble: str) -> None:
    """A new client, since the old one's connections may still be logged in; the same words the second time."""
    assert checks(alone.client()) == {}
    break_it, expected = TROUBLES[trouble]
    break_it(server, alone)
    try:
        client = alone.client()
        assert checks(client) == expected
        assert checks(client) == expected
    finally:
        if server.is_alive():
            os.kill(server.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    "words", [*MEANINGS.values(), *(words for _, told in TROUBLES.values() for words in told.values())]
)
def test_the_words_are_documented(words: str) -> None:
    """An operator who sees them finds what they mean."""
    shown = (ROOT / "docs/store.md").read_text("utf-8").replace("maxmemory-policy is …", "maxmemory-policy is allkeys")
    assert words.removesuffix("-lru; it must be noeviction") in shown


def test_a_store_that_hangs_is_not_asked_by_every_probe(server: ServerProcess, alone: Deployment) -> None:
    """After the first one others are answered at once, so that probes hold no threads; later it is ready again."""
    client = alone.client()
    freeze(server, alone)
    checks(client)
    started_s = monotonic_s()
    assert checks(client) == {"store": "does not answer in time"}
    assert monotonic_s() - started_s < 0.5
    os.kill(server.pid, signal.SIGCONT)
    wait_until(lambda: checks(client) == {}, 10, "readiness")


def test_each_queue_needs_a_worker(alone: Deployment) -> None:
    """The queues without one are named."""
    client = alone.client(AJ_QUEUES="q:jobs2,q:second,q:third")
    assert checks(client) == {"workers": "no worker is alive for q:second, q:third"}


def test_a_worker_of_somebody_else_is_none(alone: Deployment) -> None:
    """One of another deployment on the same queue, or of plain RQ, cannot run our jobs."""
    client = alone.client(AJ_PREFIX="another")
    rq.Worker([alone.queue], connection=alone.redis).register_birth()  # type: ignore[no-untyped-call]
    nobody = {"workers": f"no worker is alive for {alone.queue}"}
    assert (checks(alone.client()), checks(client)) == ({}, nobody)
    register(alone, AJ_PREFIX="another")
    assert checks(client) == {}


def test_a_worker_that_dies_without_a_word_is_missed_after_half_a_minute(alone: Deployment) -> None:
    """Its key in RQ lives that long after each sign of life; the list that names it does not count."""
    client, name = alone.client(), register(alone)
    alone.redis.delete(*(key for key in alone.redis.smembers("rq:workers") if key.decode() != name))  # type: ignore[union-attr]
    assert 0 < int(alone.redis.ttl(name)) <= WORKER_LIFE_S <= 30
    assert checks(client) == {}
    alone.redis.pexpire(name, 1)
    wait_until(lambda: not alone.redis.exists(name), what="the end of the key")
    assert alone.redis.scard("rq:workers:q:jobs2") == 2
    assert checks(client) == {"workers": "no worker is alive for q:jobs2"}


def test_a_worker_shows_life_while_a_job_runs_whatever_the_lease(alone: Deployment, folder: Path) -> None:
    """A lease of an hour must not let the worker look dead during a long job."""
    client, go = alone.client(), folder / "go"
    submit(client, task="wait_for_file", path=str(go))
    worker = alone.worker(AJ_LEASE_S="3600")
    worker.register_birth()
    seen: list[bool] = []

    def watch() -> None:
        try:
            wait_until((folder / "go.started").exists, what="a running job")
            for _ in range(3):  # the first signs may be those with which the job was taken
                alone.redis.expire(worker.key, 20)
                wait_until(lambda: int(alone.redis.ttl(worker.key)) > 25, 10, "a sign of life")
                seen.append(True)
        finally:
            go.touch()

    watcher = threading.Thread(target=watch)
    watcher.start()
    worker.work_once()
    watcher.join()
    assert len(seen) == 3


def test_a_look_writes_nothing(server: ServerProcess, alone: Deployment) -> None:
    """Although it learns whether the store can be written."""
    before = all_that_is_stored(alone)
    assert checks(alone.client()) == {}
    assert all_that_is_stored(alone) == before


def test_health_of_the_process_asks_nobody(server: ServerProcess, alone: Deployment) -> None:
    """200 while the store hangs: a restart of the process would mend nothing."""
    client = alone.client()
    freeze(server, alone)
    try:
        started_s = monotonic_s()
        assert client.get("/healthz").status_code == 200
        assert monotonic_s() - started_s < 0.5
    finally:
        os.kill(server.pid, signal.SIGCONT)


# -- before the start ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_store_that_evicts_is_refused_with_the_command_that_mends_it(alone: Deployment, policy: str) -> None:
    """Also one that evicts only what expires: results do."""
    alone.redis.config_set("maxmemory-policy", policy)
    with pytest.raises(SettingsError, match=f"{policy}.*redis-cli CONFIG SET maxmemory-policy noeviction$"):
        refuse_unfit(connect(alone.settings.redis_url))


def test_a_cluster_is_refused(folder: Path) -> None:
    """RQ cannot work there."""
    port = free_port()
    binary = str(find_engine(folder, None).binary)
    options = ["--port", str(port), "--cluster-enabled", "yes", "--dir", str(folder), "--bind", "127.0.0.1"]
    with running([binary, *options, "--cluster-port", str(free_port())], {}, folder) as process:
        wait_until(lambda: "Ready to accept" in process.output, what="a cluster's server")
        with pytest.raises(SettingsError, match="is a Redis Cluster"):
            refuse_unfit(connect(f"redis://127.0.0.1:{port}/0"))


def test_a_store_that_is_away_is_not_judged() -> None:
    """It may come later; meanwhile requests are answered 503."""
    refuse_unfit(connect("redis://127.0.0.1:1/0"))


def test_an_old_store_is_refused(alone: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its version and the one that is needed."""
    client = connect(alone.settings.redis_url)
    monkeypatch.setattr(client, "info", lambda: {"redis_version": "6.0.16"})
    with pytest.raises(SettingsError, match=r"version 6\.0\.16; RQ needs 6\.2"):
        refuse_unfit(client)
