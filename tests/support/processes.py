"""Real processes on free loopback ports: started by a test, ended by its end, their output kept for the report."""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]

# Tests run in several processes (pytest-xdist): each has a span of its own, below what kernels give out by themselves,
# so that nobody takes a port between the look and its use. Where in its span it begins is chance, for the sake of
# another run on the same machine.
SPAN = 2000
SPANS = 6
FIRST_PORT = 20_000 + SPAN * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % SPANS)
_steps = itertools.count(random.randrange(SPAN))


def free_port() -> int:
    """A loopback port on which nobody listens; the next call gives another one."""
    while True:
        port = FIRST_PORT + next(_steps) % SPAN
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def accepts(port: int) -> bool:
    """Whether something listens on the loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.5).close()
    except OSError:
        return False
    return True


class Running:
    """A process of a test. `output` is all that it has printed so far."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path, cwd: Path) -> None:
        self._log = log
        with log.open("ab") as sink:
            self.process = subprocess.Popen(
                command, env=clean_env(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        self.pid = self.process.pid

    @property
    def output(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def children(self) -> list[int]:
        """Pids of the direct children (Linux)."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, within_s: float = 30.0) -> int:
        """SIGTERM, then the exit code; SIGKILL where that takes too long."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not stop within {within_s} s:\n{self.output}") from None


def clean_env(extra: Mapping[str, str]) -> dict[str, str]:
    """This environment without settings of ours, then `extra`; the project is importable from any folder."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("AJ_") and k not in ("PORT", "REDIS_URL")}
    return {**inherited, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **extra}


@contextmanager
def running(command: Sequence[str], env: Mapping[str, str], folder: Path, cwd: Path = ROOT) -> Iterator[Running]:
    """Starts `command` and ends it, whatever happens."""
    process = Running(command, env, folder / f"{free_port()}.log", cwd)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def running_worker(env: Mapping[str, str], folder: Path, *arguments: str) -> Iterator[Running]:
    """`python worker.py`, ready to take jobs (or deliveries)."""
    with running([sys.executable, "worker.py", *arguments], env, folder) as worker:
        if "deliveries" not in arguments:
            wait_until(lambda: "Listening on" in worker.output, what="a worker that listens")
        yield worker


@contextmanager
def running_api(env: Mapping[str, str], folder: Path, *options: str) -> Iterator[tuple[Running, str]]:
    """`gunicorn wsgi:app` with these options, and its base URL."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "wsgi:app", *options]
    with running(command, {**env, "AJ_PORT": str(port)}, folder) as api:
        wait_until(lambda: accepts(port), what="an API that listens")
        yield api, f"http://127.0.0.1:{port}"
