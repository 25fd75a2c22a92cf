"""A stage on which a page is played: a folder, free ports, a store, terminals, and names that the play gives things.

The page is text for a reader, so it has a port, an address of a store and ids of its own. Here they are replaced by
those of the run, and what is printed is compared with what the page says, but for ids, times and the like.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import requests

from tests.support.markdown import Block, Command
from tests.support.processes import ROOT, clean_env, free_port
from tests.support.waiting import wait_until

PORTS = ("8000", "8140", "8141", "9000", "9001")
STORE = "redis://127.0.0.1:6379/0"
# What a terminal shows when its command is ready; `aj up` starts several, so its own word counts.
IS_READY = re.compile(r"Listening (?:at|on)|Ready to accept|^listening", re.MULTILINE)
IS_UP = re.compile("everything runs")
# A command that changes nothing is repeated until it prints what the page says: its reader waits a moment too.
CHANGES = re.compile(r"\s(-d|-F|-X|submit|cancel|redeliver|demo|install|new)\s|>")

ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
# What a run gives names of its own, which later commands of the page repeat: jobs, secrets, keys and their hashes.
NAMES = re.compile(ID + r"|whsec_[A-Za-z0-9+/]{20,}=*|aj_[\w-]{43}|\b[\da-f]{64}\b")
VARIABLE = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|ETag: (?:W/)?\"[0-9a-f]+\"|v1,[A-Za-z0-9+/]{43}="
    r"|(?<=webhook-timestamp: )\d{10}|\b\d+(?:\.\d+)? ?m?s\b"
)
LEFT_OUT = ("Server:", "Date:", "Connection:", "Content-Length:")


def general(text: str) -> str:
    """`text` without what differs from run to run, headers that the pages leave out among it."""
    lines = text.replace("\r\n", "\n").splitlines()
    kept = "\n".join(line.rstrip() for line in lines if not line.startswith(LEFT_OUT))
    return VARIABLE.sub("¤", NAMES.sub("NAME", kept)).strip()


def fits(said: str, expected: str) -> bool:
    """Whether `said` is what the page says; `…` there stands for anything in one line, alone in a line for lines."""
    pattern = re.escape(general(expected))
    pattern = re.sub(r"(?m)^…\\\n", r"(?:[^\\n]*\\n)*?", pattern)
    pattern = re.sub(r"(?m)^…\Z", r"(?s:.*)", pattern)
    return re.fullmatch(pattern.replace("…", ".*"), general(said)) is not None


class Stage:
    """`folder` is the reader's; what he starts in terminals ends with `leave`."""

    def __init__(self, folder: Path, store_url: str, env: dict[str, str]) -> None:
        self.folder = folder / "reader"
        self.folder.mkdir()
        _write_program(self.folder / "run", f"{shlex.quote(sys.executable)} -m aj.local")  # as a clone has it
        self._store_url = store_url
        self._ports = {port: str(free_port()) for port in PORTS}
        self._names: dict[str, str] = {}  # ids and secrets of the page → those of this run
        self._terminals: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self._logs = folder
        self._terminal_env = clean_env({**self._usual(_stand_ins(folder / "bin")), **env})
        self._exports = {**self._terminal_env, "AJ_URL": f"http://127.0.0.1:{self._ports['8140']}"}

    def _usual(self, programs: Path) -> dict[str, str]:
        """What makes programs that are told nothing use the ports of this run, and find each other."""
        api, sink = self._ports["8140"], self._ports["8141"]
        path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        return {
            "PATH": os.pathsep.join(path),
            "GUNICORN_CMD_ARGS": "--no-control-socket",
            "AJ_PORT": api,
            "AJ_HOOKSINK_PORT": sink,
            "AJ_CALLBACK_ALLOW": f"127.0.0.1:{sink}",
        }

    def real(self, text: str) -> str:
        """The page's text with what things are called in this run."""
        text = NAMES.sub(lambda found: self._names.get(found[0], found[0]), text.replace(STORE, self._store_url))
        return re.sub(rf"(?<=[:= (])({'|'.join(PORTS)})\b", lambda found: self._ports[found[0]], text)

    def shown(self, text: str) -> str:
        """What was printed, with what the page calls things."""
        back = {real: page for page, real in self._names.items()}
        text = NAMES.sub(lambda found: back.get(found[0], found[0]), text)
        for page, real in self._ports.items():
            text = re.sub(rf"(?<=[:= (]){real}\b", page, text)
        return text

    def save(self, block: Block) -> None:
        """The file that the reader is to write; it takes the place of an earlier one."""
        path = self.folder / block.words[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.real(block.text), "utf-8")

    def play(self, block: Block) -> None:
        """Runs each command, and compares what it prints where the page says it."""
        assert block.commands, f"{block} has no command"
        for command in block.commands:
            self._play(block, command)

    def _play(self, block: Block, command: Command) -> None:
        deadline_s = time.monotonic() + (0 if CHANGES.search(command.line) else 20)
        while True:
            status, out, errors = self._run(command.line)
            if status == 0 and self._is_as_written(command.output, out, errors):
                return
            if time.monotonic() > deadline_s:
                told = f"{block}: `{command.line}` ended with {status} and printed\n{self.shown(out)}{errors}"
                raise AssertionError(f"{told}\ninstead of\n{command.output}")
            threading.Event().wait(0.1)

    def _is_as_written(self, expected: str, out: str, errors: str) -> bool:
        """The page may leave out standard error, or all but its last line, which on a terminal replaces the others."""
        if not expected:
            return True
        last = "".join(errors.splitlines(keepends=True)[-1:])
        told = [text for text in map(self.shown, (out, out + errors, last + out)) if fits(text, expected)]
        return bool(told) and self._learn(expected, told[0])

    def _learn(self, expected: str, said: str) -> bool:
        """Takes note of what things are called in this run; false where one of them had another name before."""
        pairs = list(zip(NAMES.findall(expected), NAMES.findall(self.real(said)), strict=False))
        return all(self._names.setdefault(page, real) == real for page, real in pairs)

    def _run(self, line: str) -> tuple[int, str, str]:
        """Runs it in the reader's first terminal, in which `cd` and `export` last. A pager would see no terminal."""
        after = self._logs / "environment"
        script = f"{self.real(line)}\nstatus=$?; env -0 >{shlex.quote(str(after))}; exit $status"
        command = ["bash", "-c", script]
        done = subprocess.run(
            command, cwd=self.folder, env=self._exports, capture_output=True, text=True, timeout=60, check=False
        )
        pairs = (each.partition("=") for each in after.read_text("utf-8").split("\0") if each)
        self._exports = {name: value for name, _, value in pairs}
        return done.returncode, done.stdout, done.stderr

    def start(self, block: Block) -> None:
        """Runs the block's one command in a terminal; what ran in a terminal of that name was stopped with Ctrl-C."""
        (command,) = block.commands
        name = " ".join(block.words[2:]) or str(block.line)
        self._stop(name)
        log = self._logs / f"{block.line}.log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                ["bash", "-c", self.real(command.line)],
                cwd=self.folder,
                env=self._terminal_env,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        self._terminals[name] = process, log

        def is_ready() -> bool:
            assert process.poll() is None, f"{block}: `{command.line}` ended:\n{log.read_text()}"
            return ready.search(log.read_text("utf-8", "replace")) is not None

        ready = IS_UP if command.line.endswith(" up") else IS_READY
        wait_until(is_ready, 30, f"{block}: that `{command.line}` is ready")

    def _stop(self, name: str) -> None:
        process, log = self._terminals.pop(name, (None, None))
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"did not stop:\n{log.read_text() if log else ''}") from None

    def look(self, block: Block) -> None:
        """Waits until the terminal that the block names shows its lines, one after the other."""
        _, log = self._terminals[" ".join(block.words[2:])]

        def is_shown() -> bool:
            return general(block.text) in general(self.shown(log.read_text("utf-8", "replace")))

        wait_until(is_shown, 20, f"{block}: that the terminal shows its lines")

    def visit(self, url: str) -> None:
        """An address that the page gives its reader leads to something."""
        answer = requests.get(self.real(url), timeout=10)
        assert answer.status_code == 200, f"{url} is answered {answer.status_code}"

    def logs(self) -> str:
        """What the terminals have shown so far."""
        return "\n".join(f"-- {name}:\n{log.read_text()}" for name, (_, log) in self._terminals.items())

    def leave(self) -> None:
        """Stops everything, the last first."""
        for name in reversed(list(self._terminals)):
            self._stop(name)


def _stand_ins(folder: Path) -> Path:
    """Programs that a reader has and a test has not: `aj` of an installed package, and what installs it.

    `python3 -m venv` makes a folder with nothing to activate in it, and `pip` installs nothing: it says whether the
    extras that it is asked for exist. So a page is played with the packages of the test.
    """
    folder.mkdir()
    python = shlex.quote(sys.executable)
    pip = shlex.quote(str(ROOT / "tests/support/pip_stand_in.py"))
    venv = '[ "$1 $2" != "-m venv" ] || { mkdir -p "$3/bin"; touch "$3/bin/activate"; exit; }'
    _write_program(folder / "aj", f"{python} -m aj")
    _write_program(folder / "pip", f"{python} {pip}")
    _write_program(folder / "python3", python, venv)
    return folder


def _write_program(path: Path, program: str, before: str = "") -> None:
    path.write_text(f'#!/bin/sh\n{before}\nexec {program} "$@"\n')
    path.chmod(0o755)
