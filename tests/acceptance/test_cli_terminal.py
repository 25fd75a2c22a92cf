"""`aj` as a person uses it: on a terminal, with a line that moves and a Ctrl-C."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.local.embedded import ServerProcess
from tests.support.command_line import CommandLine
from tests.support.processes import running_api, running_worker
from tests.support.waiting import wait_until

CLEARED = "\r\x1b[K"


@pytest.fixture(scope="module")
def aj(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line, with an API and a worker of its own."""
    folder = tmp_path_factory.mktemp("terminal")
    env = {
        "AJ_REDIS_URL": store.url,
        "AJ_PREFIX": "terminal",
        "AJ_QUEUES": "q:terminal",
        "AJ_TASKS": "tests.support.tasks",
    }
    with running_api(env, folder) as (_, url), running_worker(env, folder):
        yield CommandLine({"AJ_URL": url})


@pytest.fixture
def announce(tmp_path: Path) -> tuple[str, ...]:
    """A submission that is waited for; it says `256 px` half-way, and goes on until `end` is there."""
    return ("submit", "--task", "announce", "message=256 px", f"path={tmp_path / 'end'}", "--wait")


def test_progress_is_one_line_that_is_drawn_again(aj: CommandLine, announce: tuple[str, ...], tmp_path: Path) -> None:
    """A bar, what the task says, and the time; at the end it is gone, and the result stands there."""
    with aj.on_terminal(*announce) as terminal:
        wait_until(lambda: len(set(re.findall(r"256 px, (\d+) s", terminal.shown))) > 1, what="a second that goes by")
        (tmp_path / "end").touch()
        assert terminal.end() == 0
        shown = terminal.shown
    assert re.search(r"\r\[#{15}-{15}\] 50 %, 256 px, \d+ s\x1b\[K", shown)
    assert shown.endswith(f"{CLEARED}\x1b[32msucceeded\x1b[0m\r\nnull\r\n")
    assert shown.count("\n") == 2


def test_a_narrow_window_is_never_overrun(aj: CommandLine, announce: tuple[str, ...], tmp_path: Path) -> None:
    """A line that breaks would stay there at the next drawing."""
    with aj.on_terminal(*announce, columns=21) as terminal:
        terminal.wait_for("50 %")
        (tmp_path / "end").touch()
        assert terminal.end() == 0
        drawn = re.findall(r"\r([^\r\x1b]+)\x1b\[K", terminal.shown)
    assert max(map(len, drawn)) < 21


def test_without_colours_there_is_still_a_bar(aj: CommandLine, announce: tuple[str, ...], tmp_path: Path) -> None:
    """NO_COLOR is about colours only. Source: https://no-color.org."""
    with aj.on_terminal(*announce, NO_COLOR="1") as terminal:
        terminal.wait_for("[####")
        (tmp_path / "end").touch()
        assert terminal.end() == 0
        assert re.findall(r"\x1b\[[\d;]*m", terminal.shown) == []


def test_a_terminal_whose_cursor_stays_gets_plain_lines(
    aj: CommandLine, announce: tuple[str, ...], tmp_path: Path
) -> None:
    """As in an editor's shell."""
    with aj.on_terminal(*announce, TERM="dumb") as terminal:
        terminal.wait_for("running, 50 %, 256 px\r\n")
        (tmp_path / "end").touch()
        assert terminal.end() == 0
        shown = terminal.shown
    assert shown.endswith("succeeded\r\nnull\r\n")
    assert not {"\r", "\x1b"} & set(shown.replace("\r\n", "\n"))


def test_ctrl_c_at_the_terminal_says_how_to_go_on(aj: CommandLine, announce: tuple[str, ...], tmp_path: Path) -> None:
    """The line that moves is gone, and no traceback is there."""
    with aj.on_terminal(*announce) as terminal:
        terminal.wait_for("256 px")
        terminal.press("\x03")
        assert terminal.end() == 130
        shown = terminal.shown
    (tmp_path / "end").touch()
    assert re.search(r"\r\x1b\[Kaj: interrupted; the job goes on: aj wait http://[^\s]+/jobs/[0-9a-f-]{36}\r\n$", shown)


def test_a_message_cannot_steer_the_terminal(aj: CommandLine, announce: tuple[str, ...], tmp_path: Path) -> None:
    """What a task reports is shown, never obeyed."""
    evil = [each if each != "message=256 px" else "message=\x1b]0;mine\x07" for each in announce]
    with aj.on_terminal(*evil) as terminal:
        terminal.wait_for(r"50 %, \x1b]0;mine\x07")
        (tmp_path / "end").touch()
        assert terminal.end() == 0
        assert not {"\x1b]", "\x07"} & set(re.findall(r"\x1b.|\x07", terminal.shown))
