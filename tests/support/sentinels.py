"""A master, its replica and three Sentinels that watch them, each a real process on a free loopback port."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from aj.local.server import find_engine
from tests.support.processes import free_port
from tests.support.waiting import wait_until

MASTER = "shop"
SERVER_PASSWORD, SENTINEL_PASSWORD = "hunter2 of/the:server", "hunter2@the?sentinels"
ENCODED = {SERVER_PASSWORD: "hunter2%20of%2Fthe%3Aserver", SENTINEL_PASSWORD: "hunter2%40the%3Fsentinels"}
DOWN_AFTER_MS = 500


@dataclass(slots=True)
class Node:
    """One server or Sentinel."""

    port: int
    process: subprocess.Popen[bytes]
    client: redis.Redis

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)


@dataclass(slots=True)
class Watched:
    """The five processes, and the URL under which the store is found whatever becomes of one of them."""

    master: Node
    replica: Node
    sentinels: list[Node]
    folder: Path

    @property
    def url(self) -> str:
        return self.url_of(MASTER)

    def url_of(self, master: str, password: str = SERVER_PASSWORD, sentinels: str = SENTINEL_PASSWORD) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        user = f":{ENCODED.get(password, password)}"
        query = f"sentinel_password={ENCODED.get(sentinels, sentinels)}"
        return f"redis+sentinel://{user}@{hosts}/{master}/0?{query}"

    def master_port(self) -> int:
        """Who the Sentinels say is the master."""
        said: Any = self.sentinels[0].client.sentinel_get_master_addr_by_name(MASTER)
        return int(said[1])


def _start(folder: Path, port: int, lines: list[str], password: str, *options: str) -> Node:
    folder.mkdir(parents=True)
    config = folder / "server.conf"
    own = [f"port {port}", "bind 127.0.0.1", "dir .", "daemonize no", f'requirepass "{password}"', "logfile log"]
    config.write_text("\n".join([*own, *lines, ""]))
    binary = find_engine(folder, None).binary.absolute()
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen([binary, config.name, *options], cwd=folder, stdout=out, stderr=out)
    client = redis.Redis(port=port, password=password, socket_timeout=5)
    node = Node(port, process, client)
    wait_until(lambda: _answers(node), what=f"a server on port {port}")
    return node


def _answers(node: Node) -> bool:
    try:
        return bool(node.client.ping())
    except redis.ConnectionError:
        return False


def _start_server(folder: Path, *lines: str) -> Node:
    usual = ["appendonly yes", 'save ""', "maxmemory-policy noeviction", "repl-diskless-sync-delay 0"]
    return _start(folder, free_port(), [*usual, f'masterauth "{SERVER_PASSWORD}"', *lines], SERVER_PASSWORD)


def _start_sentinel(folder: Path, master: Node) -> Node:
    lines = [
        f"sentinel monitor {MASTER} 127.0.0.1 {master.port} 2",
        f'sentinel auth-pass {MASTER} "{SERVER_PASSWORD}"',
        f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}",
        f"sentinel failover-timeout {MASTER} 3000",
    ]
    return _start(folder, free_port(), lines, SENTINEL_PASSWORD, "--sentinel")


def _knows_the_others(sentinel: Node) -> bool:
    state: Any = sentinel.client.sentinel_master(MASTER)
    return (state["num-slaves"], state["num-other-sentinels"]) == (1, 2)


@contextmanager
def watched_store(folder: Path) -> Iterator[Watched]:
    """Starts the five processes in `folder`, and ends those that are left."""
    with ExitStack() as stack:

        def kept(node: Node) -> Node:
            stack.callback(node.kill)
            return node

        master = kept(_start_server(folder / "master"))
        replica = kept(_start_server(folder / "replica", f"replicaof 127.0.0.1 {master.port}"))
        wait_until(lambda: _info(replica)["master_link_status"] == "up", what="a replica that follows")
        sentinels = [kept(_start_sentinel(folder / f"sentinel {number}", master)) for number in range(3)]
        for each in sentinels:
            wait_until(lambda each=each: _knows_the_others(each), what="Sentinels that know each other")  # type: ignore[misc]
        yield Watched(master, replica, sentinels, folder)


def _info(node: Node) -> dict[str, Any]:
    said: Any = node.client.info("replication")
    return dict(said)
