"""Completion in a bash that somebody types into, with what bash takes for the end of a word on the line."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import AJ, Terminal
from tests.support.processes import ROOT, clean_env
from tests.support.scripted_server import answer, scripted

TASKS = answer(200, {"tasks": [{"name": "primes-of-a-number"}, {"name": "shop:resize"}]})
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Terminal]:
    """A bash whose `aj` is ours, on a terminal, with completion."""
    (tmp_path / "aj").write_text(f'#!/bin/sh\nexec {" ".join(AJ)} "$@"\n')
    (tmp_path / "aj").chmod(0o755)
    ours, theirs = pty.openpty()
    env = {"TERM": "dumb", "PS1": "> ", "AJ_URL": "http://127.0.0.1:1", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        env=clean_env(env),
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    terminal = Terminal(process, ours)
    terminal.press('eval "$(aj completion bash)"; echo rea""dy\n')
    terminal.wait_for("ready")
    yield terminal
    process.kill()
    process.wait()
    os.close(ours)


@pytest.mark.parametrize("line", ["aj submit --url {url} --task pri", "aj submit n=5 --url={url} --task=pri"])
def test_a_task_is_completed_after_an_address_and_after_an_equals_sign(bash: Terminal, line: str) -> None:
    """In place of what was typed of it, and of no more."""
    with scripted(TASKS) as server:
        typed = line.format(url=server.url)
        bash.press(f"{typed}\t")
        bash.wait_for(f"{typed}mes-of-a-number")


@pytest.mark.parametrize("typed", ["--task shop:re", "--task=shop:re", "--task shop:", '--task "shop:re'])
def test_what_bash_tears_off_a_name_is_not_written_twice(bash: Terminal, typed: str) -> None:
    """A colon ends a word for it, but not between quotation marks."""
    with scripted(TASKS) as server:
        line = f"aj submit --url={server.url} {typed}"
        bash.press(f"{line}\t")
        bash.wait_for(line + "shop:resize".removeprefix(typed[typed.index("shop") :]))
