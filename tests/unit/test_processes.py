"""A child that asked for it dies with its parent, however that dies; Ctrl-C ends a program that is being loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aj.processes import Stop, die_with_parent, ends_with_parent
from tests.support.processes import Running, clean_env, running
from tests.support.waiting import wait_until

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's promise is Linux's")

# Forks a child that asks to die by the signal in argv[1], then waits; prints the child's pid when it has asked.
PARENT = """
import os, signal, sys, threading
from aj.processes import die_with_parent

parent = os.getpid()
if os.fork() == 0:
    if sys.argv[1] != "none":
        die_with_parent(parent, signal.Signals(int(sys.argv[1])))
    if sys.argv[2] == "catch":
        signal.signal(signal.SIGTERM, lambda *_: (print("caught", flush=True), os._exit(0)))
    print("child", os.getpid(), flush=True)
threading.Event().wait(60)
"""


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[Running, int]]:
    """A parent and the pid of its child; both are gone afterwards."""
    with running([sys.executable, "-c", PARENT, *arguments], {}, folder) as parent:
        pid = int(wait_until(lambda: child_of(parent), what="a child"))
        try:
            yield parent, pid
        finally:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def child_of(parent: Running) -> str:
    """The pid that the parent's child has printed, when the line is whole."""
    _, _, rest = parent.output.partition("child ")
    return rest.strip() if rest.endswith("\n") else ""


def state_and_parent(pid: int) -> tuple[str, int]:
    """The letter of a process's state and the pid of its parent; X where it is gone."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    return state, int(parent)


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and is not reaped yet does not."""
    return state_and_parent(pid)[0] not in "ZX"


def is_orphan(pid: int, of: int) -> bool:
    """Whether the process has got another parent."""
    return state_and_parent(pid)[1] != of


@linux_only
def test_a_child_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    """SIGKILL gives the parent no chance to say a word."""
    with started(tmp_path, str(int(signal.SIGKILL)), "-") as (parent, pid):
        assert alive(pid)
        parent.kill()
        wait_until(lambda: not alive(pid), within_s=5, what="the child's death")


@linux_only
def test_a_child_that_did_not_ask_lives_on(tmp_path: Path) -> None:
    """So it is the asking that does it."""
    with started(tmp_path, "none", "-") as (parent, pid):
        parent.kill()
        wait_until(lambda: is_orphan(pid, parent.pid), what="a child without its parent")
        assert alive(pid)


@linux_only
def test_the_signal_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    """SIGTERM lets a child end in its own way."""
    with started(tmp_path, str(int(signal.SIGTERM)), "catch") as (parent, pid):
        parent.kill()
        wait_until(lambda: not alive(pid), within_s=5, what="the child's end")
        assert "caught" in parent.output


@linux_only
def test_a_parent_that_was_gone_before_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel sends nothing for a death before it was asked, so the child sends the signal itself."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr("aj.processes._LIBC", FakeKernel([]))
    monkeypatch.setattr("aj.processes.os.kill", lambda pid, sig: sent.append((pid, sig)))
    die_with_parent(os.getppid() + 1, signal.SIGTERM)
    assert sent == [(os.getpid(), signal.SIGTERM)]


@linux_only
def test_a_parent_that_lives_is_left_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of `prctl`, with the number of PR_SET_PDEATHSIG, and no signal."""
    calls: list[tuple[int, ...]] = []
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr("aj.processes._LIBC", FakeKernel(calls))
    monkeypatch.setattr("aj.processes.os.kill", lambda pid, sig: sent.append((pid, sig)))
    die_with_parent(os.getppid(), signal.SIGKILL)
    assert calls == [(1, 9, 0, 0, 0)]
    assert sent == []


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call that the system does not know, and no signal either."""
    sent: list[tuple[int, int]] = []
    calls: list[tuple[int, ...]] = []
    monkeypatch.setattr("aj.processes.sys.platform", "darwin")
    monkeypatch.setattr("aj.processes._LIBC", FakeKernel(calls))
    monkeypatch.setattr("aj.processes.os.kill", lambda pid, sig: sent.append((pid, sig)))
    die_with_parent(os.getppid() + 1, signal.SIGKILL)
    assert ends_with_parent() is None
    assert (calls, sent) == ([], [])


@linux_only
@pytest.mark.parametrize(("parent_died", "code"), [(False, 0), (True, 1)])
def test_a_program_whose_starter_died_first_is_not_begun(
    monkeypatch: pytest.MonkeyPatch, parent_died: bool, code: int
) -> None:
    """A signal would meet the starter's handlers, so that the copy of the starter ends before it is the program."""
    monkeypatch.setattr("aj.processes._LIBC", FakeKernel([]))
    apply = ends_with_parent()
    assert apply is not None
    child = os.fork()
    if child == 0:
        if parent_died:
            monkeypatch.setattr("aj.processes.os.getppid", lambda: 1)
        apply()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code


# What Ctrl-C does in a program that asked for a silent end while a slow module is loaded.
LOADING = """
import os, signal, sys
from aj.processes import die_at_interrupt

if sys.argv[1] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
else:
    signal.signal(signal.SIGINT, signal.default_int_handler)
die_at_interrupt()
os.kill(os.getpid(), signal.SIGINT)
print("lives")
"""


@pytest.mark.parametrize(("before", "code", "said"), [("python's", -signal.SIGINT, ""), ("ignored", 0, "lives\n")])
def test_an_interrupt_ends_without_a_word_unless_it_is_ignored(before: str, code: int, said: str) -> None:
    """No traceback; and a background job is not ended by a Ctrl-C that is meant for another."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING, before], env=clean_env({}), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, said, "")


class FakeKernel:
    """Remembers what it was asked."""

    def __init__(self, calls: list[tuple[int, ...]]) -> None:
        self._calls = calls

    def prctl(self, *arguments: int) -> int:
        self._calls.append(arguments)
        return 0


# Sets a Stop, or waits for it, in a handler that strikes while the main thread does the same and holds its lock.
STRUCK = """
import signal, sys
from aj.processes import Stop

stop, struck = Stop(), []
signal.signal(signal.SIGTERM, lambda *_: stop.set())

def strike(frame, event, argument):
    if event == "call" and frame.f_code.co_name == sys.argv[1] and "Condition" in type(frame.f_locals["self"]).__name__:
        struck.append(1)
        if len(struck) == 1:
            signal.raise_signal(signal.SIGTERM)

sys.setprofile(strike)
stop.set() if sys.argv[1] == "notify_all" else stop.wait(0.1)
sys.setprofile(None)
print(len(struck) > 0, stop.is_set())
"""


@pytest.mark.parametrize("inside", ["notify_all", "wait"])
def test_a_signal_may_strike_who_sets_a_stop_or_waits_for_it(inside: str) -> None:
    """Two signals in a row, as a supervisor's and a parent's, make no process wait for itself."""
    command = [sys.executable, "-c", STRUCK, inside]
    done = subprocess.run(command, env=clean_env({}), capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "True True\n"


def test_a_stop_is_an_event_to_other_threads() -> None:
    """Who waits in another thread hears of it at once."""
    stop = Stop()
    heard = threading.Thread(target=stop.wait, args=(30,))
    heard.start()
    stop.set()
    heard.join(10)
    assert not heard.is_alive()
