"""A group of processes: what they print, how they end, who is told."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from aj.local import supervise
from aj.local.supervise import Ended, Group, Stopped

STUBBORN = "import signal, time; signal.signal(15, lambda *_: print('asked', flush=True)); print('up'); time.sleep(60)"

SLOW = "import signal, time; signal.signal(15, lambda *_: time.sleep(1) or exit()); print('up'); time.sleep(60)"


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def group(told: list[tuple[str, str]]) -> Iterator[Group]:
    def tell(name: str, line: str) -> None:
        told.append((name, line))
        if line == "asked":  # the user loses patience as soon as the process says that it was asked to stop
            signal.raise_signal(signal.SIGINT)

    with Group(tell) as running:
        yield running


def start(group: Group, name: str, code: str) -> None:
    group.start(name, [sys.executable, "-c", code], os.environ)


def test_every_line_comes_with_the_name_of_its_process(group: Group, told: list[tuple[str, str]]) -> None:
    """Standard output and error, and a last line without its end, whatever bytes it has."""
    start(group, "a", "import os; os.write(1, b'one\\ntwo'); os.write(2, b'\\xff\\n'); os.write(1, b'end')")
    with pytest.raises(Ended):
        group.watch(lambda: False, 10)
    group.stop("a")
    assert told == [("a", "one"), ("a", "two�"), ("a", "end")]


@pytest.mark.parametrize(
    ("code", "how"), [("raise SystemExit(3)", "exit code 3"), ("import os; os.kill(os.getpid(), 9)", "SIGKILL")]
)
def test_a_process_that_ends_by_itself_is_reported(group: Group, code: str, how: str) -> None:
    """Nothing is started again silently."""
    start(group, "steady", "import time; time.sleep(60)")
    start(group, "weak", code)
    with pytest.raises(Ended, match=rf"weak ended by itself \({how}\)"):
        group.watch(lambda: False, 10)


def test_a_signal_asks_all_to_stop_and_another_one_ends_the_patience(group: Group, told: list[tuple[str, str]]) -> None:
    """The first leaves the processes time without limit; who sends a second does not want to wait."""
    start(group, "stubborn", STUBBORN)
    assert group.watch(lambda: ("stubborn", "up") in told, 10)
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(Stopped):
        group.watch(lambda: False, 10)
    with pytest.raises(Stopped):
        group.stop("stubborn")
    assert told[-1] == ("stubborn", "asked")


def test_a_terminals_interrupt_does_not_reach_the_processes(group: Group, told: list[tuple[str, str]]) -> None:
    """Each is the leader of a session of its own: stopping in order is the supervisor's business."""
    start(group, "a", "import os, time; print(os.getsid(0) == os.getpid() == os.getpgid(0)); time.sleep(60)")
    assert group.watch(lambda: ("a", "True") in told, 10)


def test_a_process_that_takes_its_time_to_stop_is_named(
    group: Group, told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks at a silent screen should know what is waited for."""
    monkeypatch.setattr(supervise, "REMIND_S", 0.0)
    monkeypatch.setattr(supervise, "TICK_S", 0.01)
    start(group, "slow", SLOW)
    assert group.watch(lambda: ("slow", "up") in told, 10)
    group.stop("slow")
    assert told[1:] == [("slow", "(asked to stop 0 s ago; waiting for its end)")]


def test_a_supervisor_under_nohup_outlives_its_terminal() -> None:
    """An ignored hang-up stays ignored; otherwise a closed terminal asks all to stop, in order."""
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Group(lambda *_: None) as group:
            signal.raise_signal(signal.SIGHUP)
            assert not group.watch(lambda: False, 0.02)
    finally:
        signal.signal(signal.SIGHUP, former)
    with Group(lambda *_: None) as group:
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(Stopped):
            group.watch(lambda: False, 10)
