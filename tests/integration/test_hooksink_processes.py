"""The receiver as it is run: real gunicorn processes, many requests at once, kills, restarts and full disks."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from gunicorn.app.wsgiapp import WSGIApplication  # type: ignore[import-untyped]
from gunicorn.config import Config  # type: ignore[import-untyped]

from aj import clock
from aj.local import gunicorn_conf
from aj.settings import Settings
from hooksink.__main__ import options
from hooksink.receipts import Receipt, parse_line
from tests.support.processes import free_port

ROOT = Path(__file__).parents[2]
DEADLINE_S = 20.0


@contextmanager
def serving(folder: Path, workers: int = 4) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port and the process of a receiver that logs to `hook.log` in `folder`; it is stopped at the end.

    The listening socket is made here and inherited, so that no port is raced for and no start is waited for.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener, (folder / "gunicorn.out").open("ab") as out:
        command = [sys.executable, "-m", "gunicorn", "--bind", f"fd://{listener.fileno()}", "--preload"]
        command += ["--worker-class", "gthread", "--threads", "8", "--workers", str(workers), "hooksink:app"]
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(folder),
            pass_fds=[listener.fileno()],
            stdout=out,
            stderr=out,
        )
        try:
            yield listener.getsockname()[1], process
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AJ_", "HOOKSINK", "GUNICORN"))}
    return {**kept, "PYTHONPATH": str(ROOT), "HOME": str(folder), **more}


def post(port: int, job_id: str, webhook_id: str) -> tuple[int, bool]:
    """Sends a webhook; the status of the answer, and whether it was taken for a duplicate."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        body = json.dumps({"job_id": job_id, "status": "succeeded"})
        connection.request("POST", "/hooks", body, {"webhook-id": webhook_id})
        response = connection.getresponse()
        return response.status, bool(json.loads(response.read()).get("duplicate"))
    finally:
        connection.close()


def receipts(folder: Path) -> list[Receipt]:
    """Every receipt; fails where a line of the log is none."""
    content = (folder / "hook.log").read_bytes()
    assert content.endswith(b"\n")
    found = [parse_line(line) for line in content.splitlines()]
    assert None not in found
    return [receipt for receipt in found if receipt is not None]


def children(process: subprocess.Popen[bytes]) -> list[int]:
    """The ids of gunicorn's worker processes, as Linux lists them."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def test_four_hundred_receipts_at_once_are_four_hundred_whole_lines(tmp_path: Path) -> None:
    """Through four processes, of texts that need quoting; every 200 has its line, and no line is torn or mixed."""
    job_ids = [f'job {number} "é"\n' + "x" * 200 for number in range(400)]
    with serving(tmp_path) as (port, _), ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda job_id: post(port, job_id, job_id[:7]), job_ids))
    assert answers == [(200, False)] * 400
    assert sorted(receipt.job_id for receipt in receipts(tmp_path)) == sorted(job_ids)


def test_of_many_equal_webhooks_at_once_exactly_one_is_new(tmp_path: Path) -> None:
    """Whichever of four processes each of them reaches; and after a restart the id is still known."""
    with serving(tmp_path) as (port, _), ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda number: post(port, f"job_{number}", "msg_1"), range(80)))
    assert sorted(answers) == [(200, False)] + [(200, True)] * 79
    assert sum(not receipt.duplicate for receipt in receipts(tmp_path)) == 1
    with serving(tmp_path, workers=1) as (port, _):
        assert post(port, "job", "msg_1") == (200, True)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes by /proc")
def test_processes_that_are_killed_lose_no_receipt_they_answered_for(tmp_path: Path) -> None:
    """SIGKILL of every process of the pool, again and again, while webhooks come in."""
    answered: list[str] = []
    enough = threading.Event()

    def send(sender: int) -> None:
        for number in range(10_000):
            if enough.is_set():
                return
            webhook_id = f"msg_{sender}_{number}"
            try:
                status, _ = post(port, "job", webhook_id)
            except (OSError, http.client.HTTPException):
                continue
            if status == 200:
                answered.append(webhook_id)

    with serving(tmp_path) as (port, process), ThreadPoolExecutor(8) as pool:
        try:
            for sender in range(8):
                pool.submit(send, sender)
            for least in (50, 100, 150):
                wait_until(partial(has, answered, least))
                for pid in children(process):
                    os.kill(pid, signal.SIGKILL)
            wait_until(partial(has, answered, 200))
        finally:
            enough.set()
    assert set(answered) <= {receipt.webhook_id for receipt in receipts(tmp_path)}


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process, which only Linux can")
def test_a_full_disk_is_503_until_there_is_room_again(tmp_path: Path) -> None:
    """What does not fit leaves no trace, and the next webhook finds a sound log."""
    with serving(tmp_path, workers=1) as (port, process):
        assert post(port, "before", "msg_1") == (200, False)
        (worker,) = children(process)
        room = (tmp_path / "hook.log").stat().st_size + 20
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        assert post(port, "full", "msg_2")[0] == 503
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert post(port, "after", "msg_2") == (200, False)
    assert [receipt.job_id for receipt in receipts(tmp_path)] == ["before", "after"]


def test_a_chunked_body_over_the_limit_is_413(tmp_path: Path) -> None:
    """Over a real socket, where nobody announces the size."""
    with serving(tmp_path, workers=1) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        connection.request("POST", "/", iter([b"x" * 2**19] * 2 + [b"x"]), encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()


def test_a_body_that_is_cut_is_no_receipt(tmp_path: Path) -> None:
    """The sender's connection ends before its Content-Length does."""
    body = b'{"job_id": "a", "status": "failed"}'
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1)
    with serving(tmp_path, workers=1) as (port, _):
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as connection:
            connection.sendall(head + body)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
        assert post(port, "whole", "msg_1") == (200, False)
    assert [receipt.job_id for receipt in receipts(tmp_path)] == ["whole"]


@pytest.mark.parametrize("command", [["gunicorn", "--preload", "hooksink:app"], ["hooksink"]], ids=["gunicorn", "own"])
@pytest.mark.parametrize(
    ("variable", "value"), [("AJ_LEASE_S", "soon"), ("HOOKSINK_LOG", "no/such/folder/hook.log")], ids=["setting", "log"]
)
def test_a_wrong_setting_ends_the_process_with_one_line(
    tmp_path: Path, command: list[str], variable: str, value: str
) -> None:
    """Exit code 2, and the line names the variable."""
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        env=environment(tmp_path, AJ_HOOKSINK_PORT=str(free_port()), **{variable: value}),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.decode().startswith(f"hooksink: {variable} is ")
    assert ended.stderr.count(b"\n") == 1


def test_the_module_serves_on_the_port_of_the_settings(tmp_path: Path) -> None:
    """`python -m hooksink` becomes gunicorn, and logs where `HOOKSINK_LOG` says."""
    port = free_port()
    more = {"AJ_HOOKSINK_PORT": str(port), "HOOKSINK_LOG": "other.log"}
    with (tmp_path / "gunicorn.out").open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "hooksink"], cwd=tmp_path, env=environment(tmp_path, **more), stdout=out, stderr=out
        )
    try:
        wait_until(lambda: can_connect(port))
        assert post(port, "job", "msg_1") == (200, False)
        assert (tmp_path / "other.log").read_bytes().count(b"\n") == 1
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def test_the_module_serves_with_the_apis_options() -> None:
    """They are spelled out, since the receiver imports nothing of what starts processes; here they are compared."""
    command = ["gunicorn", *options(Settings())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", command)
        served = WSGIApplication("%(prog)s").cfg
    asked = Config()
    # The API's worker class gives each request of another application to a thread, as gunicorn's own does.
    others = {"bind", "on_starting", "post_worker_init", "worker_class"}
    for name in set(gunicorn_conf.__dict__) & set(served.settings) - others:
        asked.set(name, getattr(gunicorn_conf, name))
        assert served.settings[name].get() == asked.settings[name].get(), name
    assert served.bind == ["127.0.0.1:8141"]
    assert served.control_socket_disable


def test_the_module_asks_for_json_where_the_settings_do() -> None:
    """By a name, so that nothing is loaded for it otherwise."""
    assert options(Settings(log="json"))[-2:] == [f"--logger-class={gunicorn_conf.JSON_LOGGER}", "hooksink:app"]


def test_an_older_gunicorn_is_not_asked_for_what_it_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would refuse the option, and its control socket is none."""
    monkeypatch.setattr("hooksink.__main__.make_settings", dict)
    assert "--no-control-socket" not in options(Settings())


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--port=1", 2), ("other:app", 2)])
def test_the_module_explains_itself_and_refuses_what_it_does_not_know(argument: str, code: int, tmp_path: Path) -> None:
    """An option that is silently passed by would be taken for one that works."""
    ended = subprocess.run(
        [sys.executable, "-m", "hooksink", argument],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == code
    assert "usage: python -m hooksink" in ended.stdout + ended.stderr
    assert ("AJ_HOOKSINK_PORT" in ended.stdout) == (code == 0)
    assert not (tmp_path / "hook.log").exists()


def test_an_import_reads_no_environment(tmp_path: Path) -> None:
    """Only asking for `hooksink.app` does; a wrong setting does not hurt an importer."""
    program = "import hooksink, hooksink.receiver; print('imported')"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path, AJ_LEASE_S="soon"),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.stdout == b"imported\n"
    assert not (tmp_path / "hook.log").exists()


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def has(items: list[str], least: int) -> bool:
    return len(items) >= least


def wait_until(holds: Callable[[], bool]) -> None:
    """Waits for a condition, or fails after 20 s."""
    deadline_s = clock.monotonic_s() + DEADLINE_S
    pause = threading.Event()
    while not holds():
        assert clock.monotonic_s() < deadline_s
        pause.wait(0.01)
