"""Several processes as one: started together, watched together, stopped in order.

A process of the group runs in a session of its own, so that a terminal's Ctrl-C reaches only the supervisor, which
then asks each to stop when its turn has come. What they print passes through here, with the name in front.
A process that ends by itself is never started again: the supervisor says so and stops the others.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from aj import clock
from aj.errors import AjError
from aj.local.signals import Signals
from aj.processes import ends_with_parent

TICK_S = 0.5
REMIND_S = 5.0
ASKS_TO_STOP = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Stopped(AjError):
    """Somebody asked the whole group to stop."""


class Ended(AjError):
    """A process of the group ended by itself; the message says which, and how."""


@dataclass(slots=True)
class Member:
    """One process of the group; `unfinished` is the beginning of a line that it has not ended yet."""

    name: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    unfinished: bytes = b""


class Group:
    """The processes of one supervisor. `tell(name, line)` gets every line that they print, as it comes.

    As a context manager it kills whatever still runs at the end, so that no way out leaves a process behind.
    """

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._members: dict[str, Member] = {}
        self._selector = selectors.DefaultSelector()
        watched = {*ASKS_TO_STOP, signal.SIGCHLD}
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            watched.discard(signal.SIGHUP)  # started by nohup, to outlive the terminal
        self._signals = Signals(*watched)
        self._selector.register(self._signals, selectors.EVENT_READ)
        self._asked = 0

    def start(self, name: str, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Starts a process of the group."""
        process = subprocess.Popen(
            command,
            env={**environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=ends_with_parent(),  # noqa: PLW1509 (the supervisor has one thread)
        )
        assert process.stdout is not None
        self._members[name] = Member(name, process, process.stdout)
        self._selector.register(process.stdout, selectors.EVENT_READ, self._members[name])

    def watch(self, until: Callable[[], bool], wait_s: float | None = None, step_s: float = TICK_S) -> bool:
        """Passes on what is printed until `until` holds; False where it does not within `wait_s` seconds.

        Raises:
            Stopped: SIGINT, SIGTERM or SIGHUP came.
            Ended: a process ended by itself.
        """
        deadline_s = clock.monotonic_s() + (float("inf") if wait_s is None else wait_s)
        while not until():
            left_s = deadline_s - clock.monotonic_s()
            if left_s <= 0:
                return False
            self._pass_on(min(step_s, left_s))
            if self._asked:
                raise Stopped("asked to stop")
            self._check()
        return True

    def stop(self, *names: str) -> None:
        """Asks these processes to stop, all at once, and waits for them for as long as they need.

        After a few seconds each that still runs is named, so that nobody takes the wait for a hang.

        Raises: Stopped: another signal came meanwhile. They still run; `kill` ends them.
        """
        members = [self._members[name] for name in names if name in self._members]
        for member in members:
            if member.process.poll() is None:
                member.process.terminate()
        asked, remind_at_s = self._asked, clock.monotonic_s() + REMIND_S
        while running := [member for member in members if member.process.poll() is None]:
            self._pass_on(TICK_S)
            if self._asked > asked:
                raise Stopped("asked to stop at once")
            if clock.monotonic_s() >= remind_at_s:
                remind_at_s = float("inf")
                for member in running:
                    self._tell(member.name, f"(asked to stop {REMIND_S:.0f} s ago; waiting for its end)")
        self._pass_on(0.0)
        for member in members:
            self._forget(member)

    def kill(self) -> None:
        """Ends every process that still runs, and all that it started, at once."""
        for member in list(self._members.values()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(member.process.pid, signal.SIGKILL)
            member.process.wait()
            self._forget(member)

    def _check(self) -> None:
        for member in self._members.values():
            code = member.process.poll()
            if code is not None:
                self._pass_on(0.0)
                how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
                raise Ended(f"{member.name} ended by itself ({how})")

    def _forget(self, member: Member) -> None:
        if member.unfinished:
            self._tell(member.name, member.unfinished.decode("utf-8", "replace"))
        self._close(member)
        del self._members[member.name]

    def _close(self, member: Member) -> None:
        if not member.output.closed:
            self._selector.unregister(member.output)
            member.output.close()

    def _pass_on(self, wait_s: float) -> None:
        """Passes on what is printed, waiting `wait_s` seconds for it at most; notes the signals that came."""
        for key, _ in self._selector.select(wait_s):
            if key.data is None:
                self._asked += len([each for each in self._signals.take() if each in ASKS_TO_STOP])
                continue
            member: Member = key.data
            printed = os.read(key.fd, 65_536)
            if not printed:
                self._close(member)
            *lines, member.unfinished = (member.unfinished + printed).split(b"\n")
            for line in lines:
                self._tell(member.name, line.decode("utf-8", "replace").rstrip("\r"))

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._selector.close()
        self._signals.close()


def listens(host: str, port: int) -> bool:
    """Whether anything accepts connections there."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return False
    return True
