"""`./run`, as a person uses it: the demonstration, everything at once and its ends, and the script's decisions."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
import requests

from aj.local.embedded import KEEPER, is_kept
from aj.local.server import url_of
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


def run_local(command: str, folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """`python -m aj.local demo` or `up` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "aj.local", command],
        env=clean_env(env),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WHOLE_S,
        check=False,
    )


def on_free_ports(folder: Path, **env: str) -> dict[str, str]:
    """An environment for a demonstration whose temporary folder is below `folder`."""
    (folder / "tmp").mkdir()
    return {
        "AJ_PORT": str(free_port()),
        "AJ_HOOKSINK_PORT": str(free_port()),
        "TMPDIR": str(folder / "tmp"),
        **env,
    }


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
    done = run_local("demo", tmp_path, env)
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
        done = run_local(command, tmp_path, {"AJ_PORT": str(free_port()), "AJ_HOOKSINK_PORT": str(port)})
    assert done.returncode == 2
    assert re.fullmatch(
        rf"aj: cannot listen on 127.0.0.1 port {port} .*set AJ_HOOKSINK_PORT to another port\n", done.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demonstration_leaves_nothing(which: signal.Signals, tmp_path: Path) -> None:
    """From the moment that its folder is there, all is tidied up; 130 says that it was interrupted."""
    env = on_free_ports(tmp_path)
    with running([sys.executable, "-m", "aj.local", "demo"], env, tmp_path, tmp_path) as demo:
        wait_until(lambda: list((tmp_path / "tmp").glob("aj-demo-*")), WHOLE_S, "the temporary folder")
        demo.process.send_signal(which)
        assert demo.process.wait(WHOLE_S) == 130
        assert "Traceback" not in demo.output
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_demonstration_that_nobody_reads_ends_without_a_traceback(tmp_path: Path) -> None:
    """As with `./run demo | head -1`: the reader goes, and so does everything else."""
    env = on_free_ports(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-m", "aj.local", "demo"],
        env=clean_env(env),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        assert demo.stdout.readline().startswith("One job")
        demo.stdout.close()
        assert demo.stderr.read() == ""
    assert demo.returncode == 1
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(("command", "code"), [("demo", 1), ("up", 0)])
def test_a_full_disk_is_told_in_one_line(command: str, code: int, tmp_path: Path) -> None:
    """On standard error, since standard output is what cannot be written."""
    env = on_free_ports(tmp_path, AJ_WEB_WORKERS="1")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "aj.local", command],
            env=clean_env(env),
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WHOLE_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (code, "aj: nothing can be printed: No space left on device\n")


def test_a_demonstration_in_a_folder_that_cannot_be_written_says_where_the_receipt_went(tmp_path: Path) -> None:
    """It works all the same. A log that was asked for is another matter: it is refused."""
    (tmp_path / "hook.log").mkdir()  # as little to be written as a file on a read-only file system
    env = on_free_ports(tmp_path, COLUMNS="200")
    done = run_local("demo", tmp_path, env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot be written (Is a directory), so that the receipt goes to a temporary hook.log" in " ".join(
        done.stdout.split()
    )
    refused = run_local("demo", tmp_path, {**env, "HOOKSINK_LOG": str(tmp_path)})
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"aj: HOOKSINK_LOG is '{tmp_path}'; accepted: ")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AJ_TASKS", "no.such"), ("HOOKSINK_LOG", "no/such/log"), ("AJ_HOST", "192.0.2.1"), ("AJ_EMBEDDED", "never")],
)
def test_what_is_wrong_is_told_in_one_line_before_anything_starts(variable: str, value: str, tmp_path: Path) -> None:
    """Not by the end of a part, between the lines of the others."""
    done = run_local("up", tmp_path, on_free_ports(tmp_path, **{variable: value}))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"aj: .*{variable}.*\n", done.stderr)
    assert not (tmp_path / ".aj").exists()


def test_a_second_up_in_one_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    """Also on other ports: the two would share a store, and with it each other's jobs."""
    with everything(tmp_path) as first:
        second = run_local("up", tmp_path, {"AJ_PORT": str(free_port()), "AJ_HOOKSINK_PORT": str(free_port())})
        assert (second.returncode, second.stdout) == (2, "")
        assert re.fullmatch(
            rf"aj: another \./run up, process {first.supervisor.pid}, uses .*; end it, or give .*\n", second.stderr
        )
        job = first.submit(n=5)
        wait_until(lambda: requests.get(job, timeout=10).json()["status"] == "succeeded", WHOLE_S, "the job's end")


def test_the_store_is_started_again_under_all_of_it(tmp_path: Path) -> None:
    """The keeper was killed while a job ran: it is told, the job comes to its end, and stopping takes no patience."""
    with everything(tmp_path) as running_all:
        # A process that comes up later starts the store as at any start, and has nothing to tell.
        wait_until(lambda: all_at_work(url_of(tmp_path / ".aj")), WHOLE_S, "every part")
        job = running_all.submit_and_see_it_run(3)
        os.kill(int((tmp_path / ".aj" / KEEPER).read_text(encoding="ascii")), signal.SIGKILL)

        def status() -> str | None:
            answer = requests.get(job, timeout=10)
            return str(answer.json()["status"]) if answer.status_code == 200 else None

        wait_until(lambda: status() == "succeeded", WHOLE_S, "the job's end")
        # Whoever started it says so once it is up; by then the job may have ended.
        wait_until(lambda: "ended by itself; it runs again" in running_all.supervisor.output, WHOLE_S, "a word of it")
        running_all.signal(signal.SIGINT)
        assert running_all.wait() == 0
        assert running_all.is_gone()


def test_a_named_store_that_does_not_answer_is_told(tmp_path: Path) -> None:
    """All starts, since the store may come later; its password stays unsaid, also in the line for `rq info`."""
    env = on_free_ports(tmp_path, AJ_REDIS_URL=f"redis://:secret@127.0.0.1:{free_port()}", AJ_WEB_WORKERS="1")
    with running([sys.executable, "-m", "aj.local", "up"], env, tmp_path, tmp_path) as supervisor:
        wait_until(lambda: " info -u " in supervisor.output, WHOLE_S, "everything")
        assert re.search(r"up +\| the store at redis://127.0.0.1:\d+ cannot be reached", supervisor.output)
        assert re.search(r'queues +/\S+/rq info -u "\$AJ_REDIS_URL"', supervisor.output)
        assert "secret" not in supervisor.output


def test_the_line_for_rq_works_wherever_the_user_stands(tmp_path: Path) -> None:
    """The script changes to its own folder; who reads the line is somewhere else."""
    with everything(tmp_path) as running_all:
        wait_until(lambda: "queues" in running_all.supervisor.output, what="the line")
        found = re.search(r"queues +(.*)", running_all.supervisor.output)
        assert found is not None
        wait_until(lambda: "Listening on" in running_all.supervisor.output, WHOLE_S, "a worker")
        shown = subprocess.run(["sh", "-c", found[1]], cwd="/", capture_output=True, text=True, timeout=30, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "1 worker" in shown.stdout


def all_at_work(url: str) -> bool:
    """Whether the sweep has looked at RQ's lists, and the deliverer listens for news."""
    store: Any = redis.Redis.from_url(url)
    with store:
        return "cmdstat_lrange" in store.info("commandstats") and bool(store.pubsub_numsub("aj:out:news")[0][1])


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
