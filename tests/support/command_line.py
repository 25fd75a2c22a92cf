"""`aj` as a process of a test: at the end of pipes, or on a terminal of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.processes import ROOT, clean_env
from tests.support.waiting import wait_until

AJ = (sys.executable, "-m", "aj")
LONG_S = 60.0


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended: its exit code, its data, its talk."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document that was printed."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)


@dataclass(slots=True)
class CommandLine:
    """Runs `aj` in an environment that names the API."""

    env: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, stdin: str = "", **env: str) -> Done:
        """`aj arguments` at the end of pipes, to its end."""
        done = subprocess.run(
            [*AJ, *arguments],
            env=clean_env({**self.env, **env}),
            cwd=ROOT,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def into(self, writing: Any, *arguments: str, talk: Any = subprocess.PIPE) -> tuple[int, str]:
        """`aj arguments` with its data, and perhaps its talk, written there; its exit code, and else its talk.

        Buffered, as Python is by itself.
        """
        env = clean_env({**self.env, "PYTHONUNBUFFERED": ""})
        done = subprocess.run(
            [*AJ, *arguments], env=env, cwd=ROOT, stdout=writing, stderr=talk, text=True, timeout=LONG_S, check=False
        )
        return done.returncode, done.stderr or ""

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """`aj arguments` at the end of pipes, still running."""
        with subprocess.Popen(
            [*AJ, *arguments],
            env=clean_env(self.env),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def on_terminal(self, *arguments: str, columns: int = 80, **env: str) -> Iterator[Terminal]:
        """`aj arguments` on a terminal of this width, still running."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [*AJ, *arguments],
            env=clean_env({"TERM": "xterm", **self.env, **env}),
            cwd=ROOT,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # The terminal is the process's own, so that its Ctrl-C goes there.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call of the kernel
        )
        os.close(theirs)
        os.set_blocking(ours, False)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            process.wait()
            os.close(ours)


@dataclass(slots=True)
class Terminal:
    """A terminal with one process on it; `shown` is every byte that has come, as text."""

    process: subprocess.Popen[bytes]
    ours: int
    _data: bytes = b""

    @property
    def shown(self) -> str:
        while True:
            try:
                data = os.read(self.ours, 65_536)
            except (BlockingIOError, OSError):  # nothing more yet, or for ever
                break
            if not data:
                break
            self._data += data
        return self._data.decode("utf-8", "replace")

    def press(self, key: str) -> None:
        os.write(self.ours, key.encode())

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.shown, within_s=LONG_S, what=f"{text!r} on the terminal")

    def end(self) -> int:
        """The exit code, all that was written being read."""
        wait_until(lambda: (self.shown, self.process.poll() is not None)[1], within_s=LONG_S, what="the end")
        return self.process.returncode
