"""`./run`, as a person uses it: the demonstration, everything at once and its ends, and the script's decisions."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from aj.local.embedded import is_kept
from tests.support.processes import Running, accepts, clean_env, free_port, running
from tests.support.waiting import wait_until

WHOLE_S = 60.0


class Everything:
    """`python -m aj.local up` on free ports, in a folder of its own."""

    def __init__(self, supervisor: Running, port: int, receiver_port: int, folder: Path) -> None:
        self.supervisor = supervisor
        self.api = f"http://127.0.0.1:{port}"
        self.ports = (port, receiver_port)
        self.folder = folder

    def submit(self, **members: object) -> str:
        """The address of a new job whose webhook goes to the receiver."""
        document = {**members, "callback_url": f"http://127.0.0.1:{self.ports[1]}/"}
        answer = requests.post(f"{self.api}/jobs", json=document, timeout=10)
        assert answer.status_code == 202
        return self.api + answer.headers["Location"]

    def submit_and_see_it_run(self, seconds: int) -> str:
        """The address of a job that takes so long and has begun."""
        job = self.submit(task="countdown", seconds=seconds)
        wait_until(
            lambda: requests.get(job, timeout=10).json()["status"] == "running", within_s=WHOLE_S, what="a running job"
        )
        return job

    def signal(self, which: signal.Signals) -> None:
        self.supervisor.process.send_signal(which)

    def wait(self) -> int:
        return self.supervisor.process.wait(WHOLE_S)

    def is_gone(self) -> bool:
        """Whether no part listens, works or keeps the store."""
        return not is_kept(self.folder / ".aj") and not any(accepts(port) for port in self.ports)


@contextmanager
def everything(folder: Path, *ports: int) -> Iterator[Everything]:
    port, receiver_port = ports or (free_port(), free_port())
    env = {"AJ_PORT": str(port), "AJ_HOOKSINK_PORT": str(receiver_port), "AJ_WEB_WORKERS": "1", "PORT": "1"}
    with running([sys.executable, "-m", "aj.local", "up"], env, folder, folder) as supervisor:
        wait_until(lambda: "everything runs" in supervisor.output, WHOLE_S, "everything")
        yield Everything(supervisor, port, receiver_port, folder)


def test_the_demonstration_shows_the_whole_contract_and_leaves_only_the_receipt(tmp_path: Path) -> None:
    """Real processes, real answers, exit code 0; foreign settings in the environment do not disturb it."""
    port, receiver_port = free_port(), free_port()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env = {
        "AJ_PORT": str(port),
        "AJ_HOOKSINK_PORT": str(receiver_port),
        "AJ_REDIS_URL": "redis://127.0.0.1:1/0",
        "AJ_TASKS": "no.such.module",
        "TMPDIR": str(temporary),
        "COLUMNS": "60",
    }
    done = subprocess.run(
        [sys.executable, "-m", "aj.local", "demo"],
        env=clean_env(env),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WHOLE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("< 202", "< Location: /jobs/", "< Retry-After: ", "s later", "< Idempotent-Replayed: true"):
        assert part in done.stdout
    for part in ("< 422", "< 404", "application/problem+json", '"result": 25', "signature=valid"):
        assert part in re.sub(r"\s+", " ", done.stdout)
    assert max(map(len, done.stdout.splitlines())) < 60
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    assert list(temporary.iterdir()) == []
    assert "status=succeeded" in (tmp_path / "hook.log").read_text(encoding="utf-8")
    assert not accepts(port)
    assert not accepts(receiver_port)


def test_ctrl_c_lets_the_running_job_finish_and_keeps_the_data(tmp_path: Path) -> None:
    """API and worker stop first, the store last; exit code 0. What was not told yet is told after the next start."""
    with everything(tmp_path) as first:
        job = first.submit_and_see_it_run(1)
        first.signal(signal.SIGINT)
        assert first.wait() == 0
        assert first.is_gone()
    with everything(tmp_path, *first.ports) as second:
        path = job.removeprefix(first.api)
        assert requests.get(second.api + path, timeout=10).json()["status"] == "succeeded"
        receipts = tmp_path / "hook.log"
        wait_until(
            lambda: "status=succeeded" in receipts.read_text(encoding="utf-8"), within_s=WHOLE_S, what="the webhook"
        )
        second.signal(signal.SIGTERM)
        assert second.wait() == 0


def test_a_second_ctrl_c_kills(tmp_path: Path) -> None:
    """Nobody has to wait for a job of an hour; the exit code tells that it was no clean stop."""
    with everything(tmp_path) as running_all:
        running_all.submit_and_see_it_run(3600)
        running_all.signal(signal.SIGINT)
        wait_until(lambda: "a second Ctrl-C kills it" in running_all.supervisor.output, what="the offer to kill")
        running_all.signal(signal.SIGINT)
        assert running_all.wait() == 1
        assert running_all.is_gone()


@pytest.mark.skipif(sys.platform != "linux", reason="the worker is found by /proc")
def test_a_part_that_dies_takes_the_others_with_it(tmp_path: Path) -> None:
    """Nothing is restarted silently: the one that died is named."""
    with everything(tmp_path) as running_all:
        worker = next(pid for pid in running_all.supervisor.children() if "aj.worker" in command_of(pid))
        os.kill(worker, signal.SIGKILL)
        assert running_all.wait() == 1
        assert "worker ended by itself (SIGKILL)" in running_all.supervisor.output
        assert running_all.is_gone()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_the_parts_do_not_outlive_a_killed_supervisor(tmp_path: Path) -> None:
    """Nothing keeps the ports, works on in secret, or holds the store."""
    with everything(tmp_path) as running_all:
        running_all.supervisor.kill()
        wait_until(running_all.is_gone, WHOLE_S, "the end of all parts")


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_busy_port_is_told_in_one_line_before_anything_starts(command: str, tmp_path: Path) -> None:
    """The line names the port and the setting that moves it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "aj.local", command],
            env=clean_env({"AJ_PORT": str(free_port()), "AJ_HOOKSINK_PORT": str(port)}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WHOLE_S,
            check=False,
        )
    assert done.returncode == 2
    assert re.fullmatch(
        rf"aj: cannot listen on 127.0.0.1 port {port} .*set AJ_HOOKSINK_PORT to another port\n", done.stderr
    )
    assert list(tmp_path.iterdir()) == []


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
