"""What all tests share: one real server per session, and a deployment of its own for each test."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from flask.testing import FlaskClient

from aj import create_app
from aj.egress import host_of
from aj.local.embedded import ServerProcess, start_server
from aj.settings import Settings
from aj.store import connect
from aj.worker.rq_worker import Worker
from aj.worker.surroundings import load_tasks
from tests.support.browsers import HOW_TO_GET_ONE, NO_BROWSER
from tests.support.leaks import leaked_keys
from tests.support.receiver import Receiver, receiving


def pytest_configure() -> None:
    """Signals mean here what they mean to whoever starts a process at a terminal, also where the tests run in the
    background or under nohup: what is ignored there, the processes that the tests start would ignore too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Reports are sent as UTF-8 where several processes test; lone surrogates, which some tests log, are escaped."""
    return _encodable((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Says at the very end how to get what tests were left out for."""
    yield
    left_out = [each for each in terminalreporter.stats.get("skipped", []) if NO_BROWSER in str(each.longrepr)]
    if left_out:
        terminalreporter.write_line(f"{len(left_out)} tests of the dashboard were left out: {NO_BROWSER}.")
        terminalreporter.write_line(f"To get one: {HOW_TO_GET_ONE}.")


def _encodable(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {_encodable(key): _encodable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(_encodable(each) for each in data)
    return data


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server for the whole session, which is one for each process that tests."""
    server = start_server(tmp_path_factory.mktemp("store"))
    yield server
    server.stop()


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment in the session's store, with prefix and queue of its own."""

    settings: Settings
    env: dict[str, str]
    redis: redis.Redis

    @property
    def queue(self) -> str:
        return self.settings.queues[0]

    def keys(self, pattern: str = "*") -> list[str]:
        """Our keys of this deployment."""
        found: Any = self.redis.scan_iter(f"{self.settings.prefix}:{pattern}", count=1000)
        return sorted(key.decode() for key in found)

    def queued(self) -> int:
        """Entries in RQ's queue list."""
        length: Any = self.redis.llen(f"rq:queue:{self.queue}")
        return int(length)

    def client(self, **changes: str) -> FlaskClient:
        """A client of the API in this process."""
        return create_app(Settings.from_env({**self.env, **changes})).test_client()

    def worker(self, **changes: str) -> Worker:
        """An RQ worker in this process; its `work_once` takes and runs one job."""
        settings = Settings.from_env({**self.env, **changes})
        registry, surroundings = load_tasks(settings)
        client = connect(settings.redis_url, for_worker=True)
        return Worker(self.queue, client, settings, registry, host_of, surroundings)


@pytest.fixture
def deploy(store: ServerProcess) -> Iterator[Callable[..., Deployment]]:
    """Makes deployments; when the test is over, fails it where a key has no time to live that should have one."""
    made: list[Deployment] = []

    def make(**changes: str) -> Deployment:
        name = uuid4().hex[:8]
        env = {
            "AJ_REDIS_URL": store.url,
            "AJ_PREFIX": f"t{name}",
            "AJ_QUEUES": f"q:{name}",
            "AJ_TASKS": "tests.support.tasks",
            "AJ_CALLBACK_ALLOW": "127.0.0.0/8",
            **changes,
        }
        deployment = Deployment(Settings.from_env(env), env, redis.Redis.from_url(store.url))
        made.append(deployment)
        return deployment

    yield make
    for deployment in made:
        assert leaked_keys(deployment.redis, deployment.settings.prefix) == []


@pytest.fixture
def deployment(deploy: Callable[..., Deployment]) -> Deployment:
    return deploy()


@pytest.fixture
def client(deployment: Deployment) -> FlaskClient:
    return deployment.client()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
