"""Each part starts alone, by hand, in any order, and finds the others: no `AJ_REDIS_URL`, no supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from aj.local.embedded import KEEPER, is_kept
from aj.local.server import ask
from tests.support.processes import ROOT, Running, accepts, clean_env, free_port, running
from tests.support.waiting import wait_until

WHOLE_S = 60.0
# The tests may be a shell's background job, in which an interrupt is ignored.
AS_FROM_A_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
GUNICORN = (sys.executable, "-m", "gunicorn")


class Parts:
    """The commands of the contract, and when each is ready."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.port, self.receiver_port = free_port(), free_port()
        self.data, self.log = folder / "data", folder / "hook.log"
        self._folder, self._stack = folder, stack
        self._env = {
            "AJ_DATA_DIR": str(self.data),
            "AJ_PORT": str(self.port),
            "AJ_WEB_WORKERS": "1",
            "AJ_CALLBACK_ALLOW": f"127.0.0.1:{self.receiver_port}",
            "HOOKSINK_LOG": str(self.log),
        }

    def start(self, name: str) -> Running:
        """Starts a part and waits until it does its work."""
        if name == "worker":
            worker = self._run([sys.executable, "worker.py"])
            wait_until(lambda: "Listening on" in worker.output, within_s=WHOLE_S, what="a worker that listens")
            return worker
        if name == "receiver":
            receiver = self._run([*GUNICORN, "-b", f"127.0.0.1:{self.receiver_port}", "hooksink:app"])
            wait_until(lambda: answers(self.receiver_port), within_s=WHOLE_S, what="a receiver that answers")
            return receiver
        api = self._run([*GUNICORN, "wsgi:app"] if name == "wsgi" else [sys.executable, "-m", "aj.api"])
        wait_until(lambda: answers(self.port), within_s=WHOLE_S, what="an API that answers")
        return api

    def _run(self, command: Sequence[str]) -> Running:
        return self._stack.enter_context(running(command, self._env, self._folder))

    def run_a_job(self) -> None:
        """Submits a job, sees its result and its receipt."""
        callback_url = f"http://127.0.0.1:{self.receiver_port}/"
        submitted = requests.post(
            f"http://127.0.0.1:{self.port}/jobs", json={"n": 5, "callback_url": callback_url}, timeout=10
        )
        assert submitted.status_code == 202
        job_id = submitted.json()["job_id"]
        wait_until(
            lambda: f"job_id={job_id} status=succeeded" in self.log.read_text("utf-8"),
            within_s=WHOLE_S,
            what="the receipt",
        )
        answer = requests.get(f"http://127.0.0.1:{self.port}/jobs/{job_id}", timeout=10)
        assert answer.json()["result"] == 25


@pytest.mark.parametrize("order", [("wsgi", "worker", "receiver"), ("worker", "receiver", "api")], ids="-".join)
def test_the_order_in_which_the_parts_start_does_not_matter(order: tuple[str, ...], tmp_path: Path) -> None:
    """Whoever comes first starts the store, and may be killed without taking it away from the others."""
    with ExitStack() as stack:
        parts = Parts(tmp_path, stack)
        first, *_ = [parts.start(name) for name in order]
        parts.run_a_job()
        first.kill()
        wait_until(
            lambda: order[0] == "worker" or not accepts(parts.port), within_s=WHOLE_S, what="the end of the killed part"
        )
        parts.start(order[0])
        parts.run_a_job()
    wait_until(lambda: not is_kept(parts.data), within_s=WHOLE_S, what="the end of the store")


def answers(port: int) -> bool:
    """Whether a web process is there: its master listens earlier, and a signal at that moment would be lost."""
    try:
        return requests.get(f"http://127.0.0.1:{port}/", timeout=5).status_code > 0
    except requests.RequestException:
        return False


def keeper_of(data: Path) -> int | None:
    """The pid of the store's keeper, if there is one."""
    try:
        return int((data / KEEPER).read_text(encoding="ascii")) if is_kept(data) else None
    except ValueError:  # it has just begun
        return None


@pytest.mark.parametrize("survivor", ["wsgi", "api", "worker"])
def test_each_part_alone_starts_the_store_again_after_its_keepers_death(survivor: str, tmp_path: Path) -> None:
    """Nobody has to be started by hand: a web process and a worker both live long enough to see to it."""
    with ExitStack() as stack:
        parts = Parts(tmp_path, stack)
        parts.start(survivor)
        first = keeper_of(parts.data)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: keeper_of(parts.data) not in (None, first), within_s=WHOLE_S, what="another keeper")
        wait_until(lambda: ask(parts.data, b"PING") == b"+PONG\r\n", within_s=WHOLE_S, what="its server's answer")
        parts.start("wsgi" if survivor == "worker" else "worker")
        parts.start("receiver")
        parts.run_a_job()


def test_the_receiver_alone_starts_no_store(tmp_path: Path) -> None:
    """It is served with the API's configuration, and has no use for one."""
    with ExitStack() as stack:
        parts = Parts(tmp_path, stack)
        parts.start("receiver")
        assert not parts.data.exists()


def test_the_receiver_is_not_served_on_the_apis_address(tmp_path: Path) -> None:
    """In the clone gunicorn's configuration is the API's: without `-b` the two would fight for one port."""
    port, receiver_port = free_port(), free_port()
    env = {"AJ_PORT": str(port), "AJ_HOOKSINK_PORT": str(receiver_port), "HOOKSINK_LOG": str(tmp_path / "hook.log")}
    with running([*GUNICORN, "hooksink:app"], env, tmp_path) as refused:
        assert refused.process.wait(WHOLE_S) == 2
        assert f"hooksink: 127.0.0.1:{port} is the API's address" in refused.output
        assert f"-b 127.0.0.1:{receiver_port}\n" in refused.output
        assert "Traceback" not in refused.output


def test_a_wrong_setting_ends_each_part_with_one_line(tmp_path: Path) -> None:
    """No traceback and no restart loop, also under a server that loads the app for its workers."""
    commands = ([*GUNICORN, "wsgi:app"], [sys.executable, "worker.py"], [sys.executable, "-m", "aj.api"])
    with ExitStack() as stack:
        wrong = {"AJ_EMBEDDED": "never", "AJ_PORT": str(free_port())}
        started = [stack.enter_context(running(command, wrong, tmp_path)) for command in commands]
        for part in started:
            assert part.process.wait(WHOLE_S) == 2
            assert part.output == "aj: AJ_REDIS_URL is not set and AJ_EMBEDDED is 'never'; set AJ_REDIS_URL\n"


# A module that the program loads on its way, and what it is called there.
LOADED = {
    "worker.py": (["worker.py"], "redis"),
    "worker": (["-m", "aj.worker"], "redis"),
    "child": (["-m", "aj.worker.child", "sweep"], "redis"),
    "api": (["-m", "aj.api"], "gunicorn"),
    "api, its app": (["-m", "aj.api"], "flask"),
    "gunicorn": (["-m", "gunicorn", "wsgi:app"], "flask"),
    "hooksink": (["-m", "hooksink"], "gunicorn"),
    "hooksink, its app": (["-m", "hooksink"], "flask"),
    "up": (["-m", "aj.local", "up"], "selectors"),
    "demo": (["-m", "aj.local", "demo"], "selectors"),
}


@pytest.mark.parametrize(("command", "loaded"), LOADED.values(), ids=LOADED)
def test_ctrl_c_while_a_program_is_being_loaded_shows_no_traceback(
    command: list[str], loaded: str, tmp_path: Path
) -> None:
    """It just ends, by the signal, which a shell reports as 130. A module that interrupts stands in for the user."""
    (tmp_path / f"{loaded}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", encoding="ascii")
    env = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "AJ_DATA_DIR": str(tmp_path / "data"),
        "AJ_PORT": str(free_port()),
        "AJ_HOOKSINK_PORT": str(free_port()),
        "HOOKSINK_LOG": str(tmp_path / "hook.log"),
    }
    ended = subprocess.run(
        [sys.executable, "-c", AS_FROM_A_TERMINAL, *command],
        cwd=ROOT,
        env=clean_env(env),
        capture_output=True,
        text=True,
        timeout=WHOLE_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")
