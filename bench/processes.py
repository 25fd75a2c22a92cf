"""Programs that the bench starts, what they use of the processors, and their end.

Ends only what it started itself.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aj.local.waiting import wait_for
from aj.processes import ends_with_parent
from bench.wire import LOOPBACK

ROOT = Path(__file__).resolve().parents[1]
PROC = Path("/proc")
# Below those that kernels give out by themselves, so that nobody takes one between the look and its use.
FIRST_PORT, PORTS = 15_000, 5000
_steps = itertools.count(random.randrange(PORTS))  # noqa: S311 (nothing secret hangs on it)
STOP_S, WAIT_S = 15.0, 40.0
# Places in /proc/PID/stat after the program's name, which may hold anything. Source: proc_pid_stat(5).
PARENT, USER, CHILDREN_SYSTEM = 1, 11, 14


class BenchError(Exception):
    """Something did not work, so that there is no figure; the text says what."""


@dataclass(frozen=True, slots=True)
class Start:
    """What is started, in which folder, and what its environment has besides ours."""

    command: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]

    def plus(self, env: Mapping[str, str], *arguments: str) -> Start:
        """The same with more of both."""
        return Start((*self.command, *arguments), self.cwd, {**self.env, **env})


class Program:
    """A running program with its children; what it prints goes to `log`."""

    def __init__(self, start: Start, log: Path) -> None:
        self._log, self._is_asked = log, False
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                start.command,
                cwd=start.cwd,
                env=dict(start.env),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,  # Ctrl-C is for the bench, which stops everything in order
                preexec_fn=ends_with_parent(),  # noqa: PLW1509 (the bench has one thread)
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_s(self) -> float | None:
        """Processor time so far, with all children, the ended ones included; None where there is no /proc."""
        return tree_cpu_s(self.pid)

    def wait_for(self, condition: Callable[[], bool], what: str, wait_s: float = WAIT_S) -> None:
        """Waits until `condition` holds. Raises: BenchError: it does not, or the program has ended."""
        if not wait_for(lambda: self._process.poll() is not None or condition(), wait_s, 0.005):
            raise BenchError(f"{what}: not within {wait_s:g} s\n{self._tail()}")
        if self._process.poll() is not None:
            raise BenchError(f"{what}: the program ended\n{self._tail()}")

    def ask_to_stop(self) -> None:
        """Asks it once to end in order, and does not wait."""
        if not self._is_asked and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._is_asked = True

    def stop(self) -> None:
        """Ends it in order, or by force with its children where that takes too long."""
        self.ask_to_stop()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()

    def _tail(self) -> str:
        return self._log.read_text("utf-8", "replace")[-2000:]


@contextmanager
def running(start: Start, log: Path) -> Iterator[Program]:
    """Starts a program and stops it, whatever happens."""
    program = Program(start, log)
    try:
        yield program
    finally:
        program.stop()


def tree_cpu_s(root: int) -> float | None:
    """Processor time of a process and of all below it, those that were waited for included; None without /proc."""
    if not (PROC / "self/stat").exists():
        return None
    stats = {int(path.name): stat for path in PROC.glob("[0-9]*") if (stat := _stat(path))}
    ticks, pids = 0, [root]
    for pid in pids:
        pids += [child for child, stat in stats.items() if int(stat[PARENT]) == pid]
        ticks += sum(map(int, stats.get(pid, [])[USER : CHILDREN_SYSTEM + 1]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(folder: Path) -> Sequence[str]:
    try:
        return (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:  # it has ended meanwhile
        return ()


def free_port() -> int:
    """A loopback port on which nobody listens; the next call gives another one."""
    while True:
        port = FIRST_PORT + next(_steps) % PORTS
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port


def accepts(port: int) -> bool:
    """Whether something listens on the loopback port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=0.5).close()
    except OSError:
        return False
    return True
