"""`aj` as a person uses it: on a terminal, with a line that moves and a Ctrl-C."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.local.embedded import ServerProcess
from tests.support.command_line import CommandLine
from tests.support.processes import running_api, running_worker

CLEARED = "\r\x1b[K"


@pytest.fixture(scope="module")
def aj(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line, with an API and a worker of its own."""
    folder = tmp_path_factory.mktemp("terminal")
    env = {
        "AJ_REDIS_URL": store.url,
        "AJ_PREFIX": "term",
        "AJ_QUEUES": "q:term",
        "AJ_TASKS": "aj.tasks,tests.support.tasks",
    }
    with running_api(env, folder) as (_, url), running_worker(env, folder):
        yield CommandLine({"AJ_URL": url})


def test_progress_is_one_line_that_is_drawn_again(aj: CommandLine) -> None:
    """A bar, what the task says, and the time; at the end it is gone, and the result stands there."""
    with aj.on_terminal("submit", "--task", "countdown", "seconds=3", "--wait") as terminal:
        terminal.wait_for("33 %, 2 s left")
        assert terminal.end() == 0
        shown = terminal.shown
    assert re.search(r"\r\[#{10}-{20}\] 33 %, 2 s left, (about \d+ s left, )?\d s\x1b\[K", shown)
    assert shown.endswith(f'{CLEARED}\x1b[32msucceeded\x1b[0m\r\n"lift-off"\r\n')
    assert shown.count("\n") == 2


def test_a_narrow_window_is_never_overrun(aj: CommandLine) -> None:
    """A line that breaks would stay there at the next drawing."""
    with aj.on_terminal("submit", "--task", "countdown", "seconds=1", "--wait", columns=30) as terminal:
        terminal.wait_for("0 %")
        assert terminal.end() == 0
        drawn = re.findall(r"\r([^\r\x1b]+)\x1b\[K", terminal.shown)
    assert drawn
    assert max(map(len, drawn)) < 30


def test_without_colours_there_is_still_a_bar(aj: CommandLine) -> None:
    """NO_COLOR is about colours only. Source: https://no-color.org."""
    with aj.on_terminal("submit", "--task", "countdown", "seconds=1", "--wait", NO_COLOR="1") as terminal:
        assert terminal.end() == 0
        assert "\r" in terminal.shown.replace("\r\n", "\n")
        assert re.findall(r"\x1b\[[\d;]*m", terminal.shown) == []


def test_a_terminal_whose_cursor_stays_gets_plain_lines(aj: CommandLine) -> None:
    """As in an editor's shell."""
    with aj.on_terminal("submit", "--task", "countdown", "seconds=1", "--wait", TERM="dumb") as terminal:
        assert terminal.end() == 0
        shown = terminal.shown
    assert "\x1b" not in shown
    assert shown.endswith('succeeded\r\n"lift-off"\r\n')
    assert "\r" not in shown.replace("\r\n", "\n")


def test_ctrl_c_at_the_terminal_says_how_to_go_on(aj: CommandLine, tmp_path: Path) -> None:
    """The line that moves is gone, and no traceback is there."""
    end = tmp_path / "end"
    with aj.on_terminal("submit", "--task", "wait_for_file", f"path={end}", "--wait") as terminal:
        terminal.wait_for("running")
        terminal.press("\x03")
        assert terminal.end() == 130
        shown = terminal.shown
    end.touch()
    assert "Traceback" not in shown
    assert re.search(r"\r\x1b\[Kaj: interrupted; the job goes on: aj wait http://[^\s]+/jobs/[0-9a-f-]{36}\r\n$", shown)


def test_a_message_cannot_steer_the_terminal(aj: CommandLine, tmp_path: Path) -> None:
    """What a task reports is shown, never obeyed."""
    end = tmp_path / "end"
    message = "message=\x1b]0;mine\x07"
    with aj.on_terminal("submit", "--task", "announce", "--text", message, f"path={end}", "--wait") as terminal:
        terminal.wait_for(r"50 %, \x1b]0;mine\x07")
        end.touch()
        assert terminal.end() == 0
        assert not {"\x1b]", "\x07"} & set(re.findall(r"\x1b.|\x07", terminal.shown))
