"""The log of receipts on a real file: whole lines, memory, rotation, full disks, and a lock that somebody keeps."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aj import clock
from hooksink import log as log_module
from hooksink.log import ReceiptLog
from hooksink.receipts import parse_line

KEEPER = (
    "import fcntl, sys; held = open(sys.argv[1], 'ab'); fcntl.flock(held, fcntl.LOCK_EX);"
    "print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hook.log"


def add(log: ReceiptLog, webhook_id: str, job_id: str = "job") -> bool:
    """Appends a receipt and says whether it was a duplicate."""
    return log.append(job_id, "succeeded", webhook_id, "none").duplicate


def knowing(path: Path, *webhook_ids: str) -> ReceiptLog:
    """A log that wrote these ids and has read them back, as it does at the next look."""
    log = ReceiptLog(str(path))
    for webhook_id in (*webhook_ids, ""):
        add(log, webhook_id)
    return log


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


@contextmanager
def disk_of(size_bytes: int) -> Iterator[None]:
    """No file of this process may grow beyond `size_bytes`: a write is cut short there, the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_receipt_is_written_with_the_time_of_the_clock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `append` returns is what stands in the file."""
    monkeypatch.setattr(clock, "now_ms", lambda: 1_795_964_400_123)
    receipt = ReceiptLog(str(path)).append("job", "failed", "msg_1", "valid")
    assert path.read_bytes() == (
        b"2026-11-29T15:00:00.123Z job_id=job status=failed webhook_id=msg_1 signature=valid duplicate=false\n"
    )
    assert parse_line(path.read_bytes()) == receipt


def test_the_second_receipt_of_an_id_is_a_duplicate(path: Path) -> None:
    """The first is not, all later ones are, and other ids are not touched."""
    log = ReceiptLog(str(path))
    assert [add(log, each) for each in ("msg_1", "msg_1", "msg_2", "msg_1")] == [False, True, False, True]


def test_a_receipt_without_an_id_is_never_a_duplicate(path: Path) -> None:
    """A sender that gives no webhook-id cannot repeat one."""
    log = ReceiptLog(str(path))
    assert [add(log, ""), add(log, "")] == [False, False]


def test_the_memory_outlives_the_process(path: Path) -> None:
    """A new log object knows what the file holds, quoted ids included."""
    add(ReceiptLog(str(path)), "msg 1\n=")
    assert add(ReceiptLog(str(path)), "msg 1\n=")


def test_two_logs_on_one_file_share_the_memory(path: Path) -> None:
    """Each catches up with what the other wrote."""
    first, second = ReceiptLog(str(path)), ReceiptLog(str(path))
    assert [add(first, "a"), add(second, "a"), add(second, "b"), add(first, "b")] == [False, True, False, True]


def test_nobody_else_appends_between_the_look_and_the_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one log has found an id to be new and not written it yet, another cannot find it to be new too."""
    first, second = ReceiptLog(str(path)), ReceiptLog(str(path))
    write_whole = log_module._write_whole
    answers: list[bool] = []
    rival = threading.Thread(target=lambda: answers.append(add(second, "a")))

    def write_late(fd: int, line: bytes, end_bytes: int) -> None:
        monkeypatch.undo()
        rival.start()
        rival.join(0.2)
        write_whole(fd, line, end_bytes)

    monkeypatch.setattr(log_module, "_write_whole", write_late)
    assert not add(first, "a")
    rival.join(10)
    assert answers == [True]


def test_a_log_that_was_moved_away_is_begun_anew(path: Path) -> None:
    """After a rotation, receipts go to the new file, and the memory begins with it."""
    log = knowing(path, "a")
    path.rename(path.with_suffix(".1"))
    assert not add(log, "a")
    assert add(log, "a")
    assert len(lines(path)) == 2
    assert len(lines(path.with_suffix(".1"))) == 2


def test_a_log_that_was_removed_is_created_again(path: Path) -> None:
    """Nothing is written to a file without a name."""
    log = knowing(path, "a")
    path.unlink()
    assert not add(log, "a")
    assert len(lines(path)) == 1


def test_a_log_that_is_moved_away_while_an_append_waits_is_let_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the opening and the lock a rotation can happen; the receipt goes to the file that has the name."""
    log = ReceiptLog(str(path))
    take_lock = log_module._lock

    def move_then_take(fd: int, name: str, deadline_s: float) -> None:
        if not path.with_suffix(".1").exists():
            path.rename(path.with_suffix(".1"))
        take_lock(fd, name, deadline_s)

    monkeypatch.setattr(log_module, "_lock", move_then_take)
    add(log, "a")
    assert path.with_suffix(".1").read_bytes() == b""
    assert len(lines(path)) == 1


def test_a_log_that_was_cut_to_nothing_is_begun_anew(path: Path) -> None:
    """As `copytruncate` of logrotate does it."""
    log = knowing(path, "a")
    os.truncate(path, 0)
    assert not add(log, "a")
    assert len(lines(path)) == 1


def test_a_log_that_was_cut_and_grew_again_is_read_anew(path: Path) -> None:
    """A file that is longer than when it was last read may still be another one."""
    log, other = knowing(path, "a"), ReceiptLog(str(path))
    os.truncate(path, 0)
    for webhook_id in ("b", "c", "d"):
        add(other, webhook_id)
    assert [add(log, each) for each in ("a", "b", "c", "d")] == [False, True, True, True]


def test_a_torn_line_does_not_swallow_the_next_one(path: Path) -> None:
    """Half a line, as a crash leaves it, is closed with a newline before the next receipt."""
    path.write_bytes(b"2026-11-29T15:00:00.123Z job_id=torn sta")
    log = ReceiptLog(str(path))
    add(log, "a")
    assert [parse_line(line) is None for line in lines(path)] == [True, False]
    assert [receipt.webhook_id for receipt in log.last(10)] == ["a"]


def test_a_log_of_other_content_is_kept_and_skipped(path: Path) -> None:
    """Bytes that are no receipts stay where they are."""
    path.write_bytes(b"\xff\xfe\0garbage\nhello\n")
    log = ReceiptLog(str(path))
    add(log, "a")
    assert len(lines(path)) == 3
    assert len(log.last(10)) == 1


@pytest.mark.parametrize("room_bytes", [0, 1, 40])
def test_a_full_disk_leaves_no_part_of_a_line(path: Path, room_bytes: int) -> None:
    """A write that is cut short is taken back, reported, and not remembered."""
    log = ReceiptLog(str(path))
    add(log, "a")
    before = path.read_bytes()
    with disk_of(len(before) + room_bytes), pytest.raises(OSError):
        add(log, "b")
    assert path.read_bytes() == before
    assert not add(log, "b")


def test_a_write_that_is_cut_short_for_no_reason_is_completed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the line follows while the lock is held."""
    log = ReceiptLog(str(path))
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    add(log, "a")
    monkeypatch.undo()
    assert [receipt.webhook_id for receipt in log.last(10)] == ["a"]


def test_a_sync_that_fails_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the sync to disk there is no receipt to speak of; the repetition is a duplicate."""

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    log = knowing(path)  # the folder of a new log is synced as well; this one is not new
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError):
        add(log, "a")
    monkeypatch.undo()
    assert add(log, "a")


def test_a_process_that_keeps_the_lock_delays_but_does_not_hang(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process sits on the lock an append fails in bounded time; afterwards it works."""
    log = ReceiptLog(str(path))
    monkeypatch.setattr(log_module, "LOCK_WAIT_S", 0.2)
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"held\n"
        with pytest.raises(TimeoutError, match="locked by another process"):
            add(log, "a")
        assert log.last(10) == []
    finally:
        keeper.kill()
        keeper.communicate()
    assert not add(log, "a")


def test_no_descriptor_is_left_open(path: Path) -> None:
    """Neither appends nor failed ones hold on to the file."""
    log = ReceiptLog(str(path))
    before = len(os.listdir("/dev/fd"))
    for number in range(20):
        add(log, str(number))
    with disk_of(path.stat().st_size), pytest.raises(OSError):
        add(log, "full")
    log.last(10)
    assert len(os.listdir("/dev/fd")) == before


def test_the_last_receipts_come_newest_first(path: Path) -> None:
    """At most as many as were asked for, from the end of the file."""
    log = ReceiptLog(str(path))
    for number in range(7):
        add(log, f"msg_{number}")
    assert [receipt.webhook_id for receipt in log.last(3)] == ["msg_6", "msg_5", "msg_4"]
    assert len(log.last(100)) == 7


def test_a_long_log_is_read_from_its_end_only(path: Path) -> None:
    """The work for a list does not grow with the file: a hole of 100 GB in front does not matter."""
    log = ReceiptLog(str(path))
    with path.open("r+b") as file:
        file.truncate(100 * 2**30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n2026-11-29T15:00:00.123Z job_id=j status=failed webhook_id=w signature=none duplicate=false\n")
    assert [receipt.webhook_id for receipt in log.last(100)] == ["w"]


def test_a_line_that_is_being_written_is_not_listed(path: Path) -> None:
    """What has no newline yet is no receipt yet."""
    log = ReceiptLog(str(path))
    add(log, "a")
    with path.open("ab") as file:
        file.write(path.read_bytes().rstrip(b"\n"))
    assert len(log.last(10)) == 1


@pytest.mark.parametrize("kind", ["folder", "pipe", "absent folder"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    """A wrong path is found at the start, not at the first webhook."""
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        target = target / "hook.log"
    with pytest.raises(OSError):
        ReceiptLog(str(target))
