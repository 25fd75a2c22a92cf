"""The store of a run: a server of its own on a loopback port, with a password, and what it says of its use.

On a port and not on a socket as the embedded store, since that is where a Redis is met outside of tutorials too.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from aj.local.server import find_engine
from aj.local.waiting import pause, wait_for
from aj.processes import ends_with_parent
from bench.processes import BenchError, free_port, tree_cpu_s

# What is accepted is on disk a second later, as the README asks of a store; rewriting its file would cost at random.
CONFIG = """
port {port}
bind 127.0.0.1
requirepass {password}
dir "{folder}"
save ""
appendonly yes
appendfsync everysec
auto-aof-rewrite-percentage 0
maxmemory-policy noeviction
daemonize no
"""


SETTLE_STEP_S, SETTLE_STEPS = 0.1, 50


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server has done so far: round trips, commands (those inside scripts too), processor time."""

    reads: int
    commands: int
    cpu_s: float | None


@dataclass(frozen=True, slots=True)
class Store:
    """A running server; `engine` is its name and version."""

    url: str
    engine: str
    pid: int
    client: Any

    def usage(self) -> Usage:
        stats = self.client.info("stats")
        return Usage(stats["total_reads_processed"], stats["total_commands_processed"], tree_cpu_s(self.pid))

    def memory_bytes(self) -> int:
        """What the data takes, without what connections and the append-only file hold for a moment."""
        told = self.client.info("memory")
        return int(told["used_memory"] - told["mem_clients_normal"] - told["mem_aof_buffer"])

    def clear(self) -> None:
        """Forgets everything."""
        self.client.flushall()
        self.settle()

    @contextmanager
    def without_file(self) -> Iterator[None]:
        """As long as the block runs, nothing is written to disk. The store should be empty at its end."""
        self.client.config_set("appendonly", "no")
        try:
            yield
        finally:
            self.client.config_set("appendonly", "yes")
            self.settle()

    def settle(self) -> None:
        """Waits until the server rests: after many writes or deletions it has still to tidy up and to write."""
        for _ in range(SETTLE_STEPS):
            before_s = tree_cpu_s(self.pid)
            pause(SETTLE_STEP_S)
            after_s = tree_cpu_s(self.pid)
            if before_s is None or after_s is None or after_s - before_s < SETTLE_STEP_S / 5:
                return


@contextmanager
def running_store(folder: Path) -> Iterator[Store]:
    """Starts the server that the embedded store would be and stops it at the end. Raises: BenchError, SettingsError."""
    engine = find_engine(folder, None)
    port, password = free_port(), secrets.token_hex(16)
    with (folder / "store.log").open("ab") as log:
        process = subprocess.Popen(
            [engine.binary.absolute(), "-"],  # the settings by standard input, where nobody sees the password
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=ends_with_parent(),  # noqa: PLW1509 (the bench has one thread)
        )
    assert process.stdin is not None
    process.stdin.write(CONFIG.format(port=port, password=password, folder=folder).encode())
    process.stdin.close()
    client: Any = redis.Redis(port=port, password=password)
    try:
        if not wait_for(lambda: process.poll() is not None or _answers(client), 20) or process.poll() is not None:
            raise BenchError(f"{engine} does not start: {(folder / 'store.log').read_text('utf-8', 'replace')[-500:]}")
        yield Store(f"redis://:{password}@127.0.0.1:{port}/0", str(engine), process.pid, client)
    finally:
        client.close()
        process.terminate()
        process.wait()


def _answers(client: Any) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
