"""What is told in one line before anything is started."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from aj.errors import SettingsError
from aj.local.preflight import look_ahead, receipts_log, refuse_bad_log, refuse_busy, shown_url, trouble_with_log
from aj.local.supervise import listens
from aj.settings import Settings
from tests.support.processes import clean_env, free_port


def test_a_busy_port_is_named_with_the_setting_that_moves_it() -> None:
    """Before anything is started; two of ours on one port are found out as well."""
    port = free_port()  # nobody else takes it once it is free again
    with socket.create_server(("127.0.0.1", port)):
        assert listens("127.0.0.1", port)
        with pytest.raises(SettingsError, match=f"127.0.0.1 port {port} .*end what listens .*set AJ_PORT to another"):
            refuse_busy([("127.0.0.1", port, "AJ_PORT")])
    refuse_busy([("127.0.0.1", port, "AJ_PORT")])
    assert not listens("127.0.0.1", port)
    with pytest.raises(SettingsError, match="AJ_HOOKSINK_PORT"):
        refuse_busy([("127.0.0.1", port, "AJ_PORT"), ("127.0.0.1", port, "AJ_HOOKSINK_PORT")])


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_an_address_of_another_machine_is_no_busy_port(host: str) -> None:
    """There is nothing to end there; another port would not help either."""
    with pytest.raises(
        SettingsError, match=rf"^cannot listen on {host} .*; AJ_HOST must be an address of this machine"
    ):
        refuse_busy([(host, free_port(), "AJ_PORT")])


def test_the_log_is_the_one_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one beside us; an empty value is none."""
    monkeypatch.chdir(tmp_path)
    assert receipts_log({"HOOKSINK_LOG": "a/b.log"}) == tmp_path / "a/b.log"
    assert receipts_log({"HOOKSINK_LOG": ""}) == receipts_log({}) == tmp_path / "hook.log"


def test_a_log_that_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    """What it holds is the receiver's memory."""
    log = tmp_path / "hook.log"
    log.write_text("kept\n", encoding="ascii")
    assert trouble_with_log(log) is None
    assert log.read_text(encoding="ascii") == "kept\n"


def test_a_log_that_cannot_be_written_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A folder, a pipe and a place that is not there; nothing hangs."""
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (("", "directory"), ("pipe", "not a regular file"), ("no/such/log", "No such file")):
        with pytest.raises(
            SettingsError, match=f"^HOOKSINK_LOG is .*; accepted: a file that can be written .*{reason}"
        ):
            refuse_bad_log(tmp_path / path)


def looked_ahead(folder: Path, tasks: str, **env: str) -> list[str]:
    environ = clean_env({"AJ_TASKS": tasks, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), **env})
    return look_ahead(Settings.from_env(environ), environ)


def test_tasks_are_loaded_where_they_can_do_no_harm(tmp_path: Path) -> None:
    """What a module prints or starts stays out of the supervisor, and is not taken for a remark."""
    (tmp_path / "loud.py").write_text(
        "import threading; print('loud'); threading.Thread(target=print).start()\n"
        "from aj import task\n@task\ndef one() -> None: ...\n",
        encoding="ascii",
    )
    assert looked_ahead(tmp_path, "loud") == []
    assert "loud" not in sys.modules


def test_a_module_without_tasks_is_refused(tmp_path: Path) -> None:
    """In the words of the process that would have refused it."""
    with pytest.raises(SettingsError, match=r"^AJ_TASKS names 'no\.such', which cannot be imported"):
        looked_ahead(tmp_path, "no.such")


def test_a_module_with_a_fault_shows_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The traceback is the author's, and the line says whose module it is."""
    (tmp_path / "faulty.py").write_text("raise RuntimeError('a fault')\n", encoding="ascii")
    with pytest.raises(SettingsError, match=r"^AJ_TASKS is 'faulty', which cannot be imported; see above$"):
        looked_ahead(tmp_path, "faulty")
    assert "RuntimeError: a fault" in capfd.readouterr().err


def test_a_store_that_does_not_answer_is_remarked_without_its_password(tmp_path: Path) -> None:
    """It may come back, so that it is no refusal."""
    url = f"redis://user:secret@127.0.0.1:{free_port()}/0"
    (remark,) = looked_ahead(tmp_path, "aj.tasks", AJ_REDIS_URL=url)
    assert remark == f"the store at {shown_url(url)} cannot be reached; meanwhile requests get 503"
    assert "secret" not in remark


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("rediss://:p@ss@host/1?password=secret", "rediss://host/1"),
        ("unix:///a%20b/store.sock", "unix:///a%20b/store.sock"),
    ],
)
def test_an_address_is_shown_without_secrets(url: str, shown: str) -> None:
    """Neither in front of the host nor among the options."""
    assert shown_url(url) == shown
