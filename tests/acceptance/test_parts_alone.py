"""Each part starts alone, by hand, in any order, and finds the others: no `AJ_REDIS_URL`, no supervisor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from aj.local.embedded import is_kept
from tests.support.processes import Running, accepts, free_port, running
from tests.support.waiting import wait_until

WHOLE_S = 60.0
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
            wait_until(lambda: accepts(self.receiver_port), within_s=WHOLE_S, what="a receiver that listens")
            return receiver
        api = self._run([*GUNICORN, "wsgi:app"] if name == "wsgi" else [sys.executable, "-m", "aj.api"])
        wait_until(lambda: accepts(self.port), within_s=WHOLE_S, what="an API that listens")
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


def test_a_wrong_setting_ends_each_part_with_one_line(tmp_path: Path) -> None:
    """No traceback and no restart loop, also under a server that loads the app for its workers."""
    commands = ([*GUNICORN, "wsgi:app"], [sys.executable, "worker.py"], [sys.executable, "-m", "aj.api"])
    with ExitStack() as stack:
        wrong = {"AJ_EMBEDDED": "never", "AJ_PORT": str(free_port())}
        started = [stack.enter_context(running(command, wrong, tmp_path)) for command in commands]
        for part in started:
            assert part.process.wait(WHOLE_S) == 2
            assert part.output == "aj: AJ_REDIS_URL is not set and AJ_EMBEDDED is 'never'; set AJ_REDIS_URL\n"
