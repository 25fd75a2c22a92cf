"""The deployment under attack: a store, two APIs, two worker fleets, a receiver; and the clients and the recorder.

Starts processes, and starts those again that have ended. It kills nothing. The harness has one thread only, since
the store ends with the thread that started it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

import redis

from aj.clock import monotonic_s
from aj.local.embedded import ServerProcess, start_server
from tests.chaos.notes import RECEIVER, SECRET, Plan, read_notes
from tests.chaos.tasks import FOLDER
from tests.support.inside import is_alive
from tests.support.processes import ROOT, Running, accepts, free_port
from tests.support.waiting import wait_until

QUEUE, PREFIX, RECEIPTS = "q:jobs2", "aj", "hook.log"
LEASE_S = 3
AGAIN_AFTER_S = 0.2


class Part:
    """A process that is started again when it has ended."""

    def __init__(self, name: str, command: list[str], env: dict[str, str], folder: Path) -> None:
        self._command, self._env, self._log = command, env, folder / f"{name}.log"
        self.name, self._dead_since_s = name, 0.0
        self.process = self._start()

    def _start(self) -> Running:
        return Running([sys.executable, *self._command], self._env, self._log, ROOT)

    @property
    def is_running(self) -> bool:
        return self.process.process.poll() is None

    def tend(self) -> None:
        if self.is_running:
            self._dead_since_s = 0.0
        elif not self._dead_since_s:
            self._dead_since_s = monotonic_s()
        elif monotonic_s() - self._dead_since_s > AGAIN_AFTER_S:
            self.process, self._dead_since_s = self._start(), 0.0


class Scene:
    """Everything that runs. `folder` holds the store, the logs and the evidence."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.store: ServerProcess = self._start_store()
        self._store_back_s, self._store_thaws_s = 0.0, float("inf")
        ports = [free_port() for _ in range(3)]
        self.apis = [f"http://127.0.0.1:{port}" for port in ports[:2]]
        self.hooksink = f"http://127.0.0.1:{ports[2]}/hook"
        self.recorder = self._outside("receiver", str(folder), str(seed))
        self.clients: Running | None = None
        env = self._env()
        gunicorn = ["-m", "gunicorn", "--workers", "2"]
        self.parts = {
            "api 0": Part("api0", [*gunicorn, "wsgi:app"], {**env, "AJ_PORT": str(ports[0])}, folder),
            "api 1": Part("api1", [*gunicorn, "wsgi:app"], {**env, "AJ_PORT": str(ports[1])}, folder),
            "fleet 0": Part("fleet0", ["worker.py"], env, folder),
            "fleet 1": Part("fleet1", ["worker.py"], env, folder),
            "hooksink": Part("hooksink", [*gunicorn, "-b", f"127.0.0.1:{ports[2]}", "hooksink:app"], env, folder),
        }
        self.orphans: set[int] = set()
        for port in ports:
            wait_until(lambda port=port: accepts(port), 30, "a server that listens")  # type: ignore[misc]

    def _env(self) -> dict[str, str]:
        return {
            "AJ_REDIS_URL": self.store.url,
            "AJ_PREFIX": PREFIX,
            "AJ_QUEUES": QUEUE,
            "AJ_TASKS": "tests.chaos.tasks",
            "AJ_WORKERS": "2",
            "AJ_LEASE_S": str(LEASE_S),
            "AJ_JOB_TIMEOUT_S": "30",
            "AJ_WEBHOOK_SECRETS": SECRET,
            "AJ_CALLBACK_ALLOW": "127.0.0.0/8",
            "AJ_CALLBACK_TIMEOUT_S": "2",
            "AJ_CALLBACK_SCHEDULE_S": ",".join(["0", *["0.5"] * 99]),
            "HOOKSINK_LOG": str(self.folder / RECEIPTS),
            FOLDER: str(self.folder),
        }

    def _outside(self, module: str, *arguments: str) -> Running:
        command = [sys.executable, "-m", f"tests.chaos.{module}", *arguments]
        return Running(command, {}, self.folder / f"{module}.log", ROOT)

    def _start_store(self) -> ServerProcess:
        """`always`: what was answered is on disk, so that the audit may ask for every single job."""
        server = start_server(self.folder / "store")
        redis.Redis.from_url(server.url).config_set("appendfsync", "always")
        return server

    def start_clients(self, clients: int, open_jobs: int) -> None:
        heard = wait_until(self._recorder_urls, what="the recorder's three addresses")
        plan = Plan(str(self.folder), self.seed, self.apis, [*heard, self.hooksink], clients, open_jobs)
        self.clients = self._outside("clients", json.dumps(asdict(plan)))

    def _recorder_urls(self) -> list[str] | None:
        urls = [str(note["url"]) for note in read_notes(self.folder / RECEIVER, "listening")]
        return urls if len(urls) == 3 else None

    def kill_store(self, for_s: float) -> None:
        """SIGKILL; it comes back on the same files after `for_s` seconds."""
        self.store.kill()
        self._store_back_s = monotonic_s() + for_s

    @property
    def store_answers(self) -> bool:
        """Neither killed nor frozen."""
        return self.store.is_alive() and self._store_thaws_s == float("inf")

    def freeze_store(self, for_s: float) -> None:
        """SIGSTOP: it is there and says nothing for `for_s` seconds."""
        os.kill(self.store.pid, signal.SIGSTOP)
        self._store_thaws_s = monotonic_s() + for_s

    def _thaw_store(self) -> None:
        self._store_thaws_s = float("inf")
        if self.store.is_alive():
            os.kill(self.store.pid, signal.SIGCONT)

    def tend(self) -> None:
        """Starts again what has ended and is due."""
        if monotonic_s() >= self._store_thaws_s:
            self._thaw_store()
        if not self.store.is_alive() and monotonic_s() >= self._store_back_s:
            self.store = self._start_store()
        for part in self.parts.values():
            part.tend()

    def living_orphans(self) -> list[int]:
        """Children of killed fleets that still run."""
        self.orphans = {pid for pid in self.orphans if is_alive(pid)}
        return sorted(self.orphans)

    def close(self) -> None:
        """Ends every process, the store last."""
        self._thaw_store()
        outside = [each for each in (self.clients, self.recorder) if each is not None]
        parts = [part.process for part in self.parts.values()]
        for process in (*outside, *parts):
            process.process.terminate()
        for process in outside:
            process.kill()
        for process in parts:
            process.stop()
        self.store.stop()
