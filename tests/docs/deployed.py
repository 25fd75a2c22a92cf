"""The application of deploy/app, started by what the files beside it say: on free ports, in a folder of its own."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis
import requests

from aj.local.server import find_engine
from tests.support.processes import ROOT, Running, free_port, running
from tests.support.waiting import wait_until

DEPLOY = ROOT / "deploy"
HOME = "/srv/shop"
ENV_FILE = "/etc/shop.env"


@dataclass(frozen=True, slots=True)
class Site:
    """The application, running: where it listens, its folder, its two processes, and what they tell systemd."""

    url: str
    home: Path
    env: dict[str, str]
    web: Running
    worker: Running
    told: socket.socket

    def submit(self, order: int = 17, parcels: int = 1, prefer: str | None = None) -> requests.Response:
        """On a connection of its own, as a proxy makes them."""
        headers = {"Prefer": prefer} if prefer else {}
        members = {"order": order, "parcels": parcels}
        return requests.post(f"{self.url}/api/jobs", json=members, headers=headers, timeout=20)


def unit_of(name: str) -> dict[str, str]:
    """The lines of a unit file; none of ours says one thing twice."""
    return dict(re.findall(r"^(\w+)=(.*)$", (DEPLOY / name).read_text("utf-8"), re.MULTILINE))


def env_of(file: Path) -> dict[str, str]:
    """An environment file as systemd reads it: no shell, a line each."""
    lines = file.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def installed(folder: Path) -> Path:
    """deploy/app as it is on a host, with the packages of this test."""
    home = folder / "srv/shop"
    shutil.copytree(DEPLOY / "app", home, ignore=shutil.ignore_patterns("__pycache__"))
    (home / ".venv").symlink_to(Path(sys.executable).parent.parent)
    return home


@contextmanager
def store_with(folder: Path, *lines: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server on the files of `folder` with these lines of configuration; its URL and process."""
    folder.mkdir(exist_ok=True)
    port = free_port()
    (folder / "redis.conf").write_text("\n".join([*lines, f"port {port}", "bind 127.0.0.1", f"dir {folder}", ""]))
    binary = find_engine(folder, None).binary.absolute()
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([binary, folder / "redis.conf"], stdout=log, stderr=log)
    try:
        wait_until(lambda: _is_there(port), what="a store that has read its files")
        yield f"redis://127.0.0.1:{port}/0", process
    finally:
        process.terminate()
        process.wait()


def _is_there(port: int) -> bool:
    try:
        return bool(redis.Redis(port=port).ping())
    except redis.ConnectionError:  # that it still loads is one
        return False


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """What the units start, with the store that redis.conf describes."""
    home, port = installed(folder), free_port()
    with ExitStack() as stack:
        told = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        told.bind(str(folder / "notify"))
        told.settimeout(30)
        store_url, _ = stack.enter_context(store_with(folder / "store", (DEPLOY / "redis.conf").read_text("utf-8")))
        env = {**env_of(DEPLOY / "shop.env"), "AJ_REDIS_URL": store_url, "BIND": f"127.0.0.1:{port}"}
        env["NOTIFY_SOCKET"] = str(folder / "notify")
        web, worker = (
            stack.enter_context(running(command_of(unit, home), env, folder, home))
            for unit in ("shop-web.service", "shop-worker@.service")
        )
        made = Site(f"http://127.0.0.1:{port}", home, env, web, worker, told)
        wait_until(lambda: answers(f"{made.url}/api/readyz"), 30, "an application that is ready")
        yield made


def command_of(unit: str, home: Path) -> list[str]:
    return shlex.split(unit_of(unit)["ExecStart"].replace(HOME, str(home)))


def answers(url: str) -> bool:
    """Whether a GET of it is answered 200."""
    try:
        return requests.get(url, timeout=5).status_code == 200
    except requests.RequestException:  # web processes that are still being started make it wait
        return False
