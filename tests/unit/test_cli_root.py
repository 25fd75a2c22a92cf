"""The table of commands: each is there, is loaded when it is called, and needs no more than it must."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from aj.cli import main, root
from aj.cli.ends import exit_of, tell_error
from aj.cli.exits import Exit
from aj.client import ApiError, ClientError, JobGone, JobUnknown, NotUnderstood, Unreachable
from tests.support.processes import ROOT, clean_env

SERVER_ONLY = ("flask", "gunicorn", "http_sf", "pydantic", "redis", "rq")


@pytest.mark.parametrize("name", root.COMMANDS)
def test_the_table_says_of_a_command_what_it_says_itself(name: str) -> None:
    """The help of `aj` loads nothing, and is true all the same."""
    command = root.aj.get_command(click.Context(root.aj), name)
    assert command is not None
    assert command.name == name
    assert f"{(command.help or '').partition('.')[0]}.".split() == root.COMMANDS[name][1].split()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["submit", "n"], 2),
        (["list", "--url", "http://127.0.0.1:1", "--patience", "0.1"], 6),
        (["key", "new", "shop"], 0),
        (["secret", "new"], 0),
        (["completion", "zsh"], 0),
    ],
)
def test_a_caller_needs_nothing_of_a_server(arguments: list[str], code: int) -> None:
    """Where only the base dependencies are installed."""
    done = _without(SERVER_ONLY, *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


def test_help_loads_neither_client_nor_server() -> None:
    """It is there at once."""
    script = "import sys; from aj.cli import main; main(['--help']); print({'requests', 'flask'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=clean_env({}), cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize(
    ("arguments", "becomes"),
    [
        (["up"], ["aj.local", "up"]),
        (["demo"], ["aj.local", "demo"]),
        (["worker"], ["aj.worker"]),
        (["worker", "--only", "jobs"], ["aj.worker", "--only", "jobs"]),
    ],
)
def test_a_server_is_what_python_would_start(
    arguments: list[str], becomes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same process, with the working folder among the places where modules are looked for."""
    called: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda path, words: called.append([path, *words]))
    assert main(arguments) == 0
    assert called == [[sys.executable, sys.executable, "-m", *becomes]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["submit", "n"],
        ["submit", "n=5", "n=6"],
        ["submit", "n=5", "--timeout", "1"],
        ["submit", "task=square", "--task", "square", "n=5"],
        ["submit", "n=5", "--key", "größer"],
        ["submit", "--body", "/nonexistent"],
        ["wait", "01a2", "--timeout", "nan"],
        ["wait", "01a2", "--timeout", "0"],
        ["wait", "01a2", "--patience", "soon"],
        ["status"],
        ["status", ""],
        ["status", "http://127.0.0.1:1/x"],
        ["status", "http://127.0.0.1:1/jobs/01a2"],
        ["status", "01a2", "--url", "127.0.0.1:8140"],
        ["status", "01a2", "--url", "http://me:aj_secret@127.0.0.1"],
        ["status", "01a2", "--api-key", "aj secret"],
        ["list", "--status", "done"],
        ["nonsense"],
        ["key", "new", "a:b"],
        ["key", "new", f"a:{64 * '0'},b"],
        ["completion", "csh"],
    ],
)
def test_a_wrong_call_is_told_in_one_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is asked of any API; no key and no password is repeated."""
    monkeypatch.setenv("AJ_API_KEY", "aj_secret")
    monkeypatch.setattr("requests.Session.send", None)
    assert main(arguments) == Exit.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("aj: ")
    assert shown.err.count("\n") == 1
    assert "secret" not in shown.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It calls `aj` for what it offers."""
    assert main(["completion", shell]) == 0
    assert f"_AJ_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ApiError(401, {}, ""), Exit.REFUSED),
        (ApiError(409, {}, ""), Exit.REFUSED),
        (ApiError(422, {}, ""), Exit.REFUSED),
        (ApiError(429, {}, ""), Exit.NO_ANSWER),
        (ApiError(500, {}, ""), Exit.NO_ANSWER),
        (ApiError(503, {}, ""), Exit.NO_ANSWER),
        (JobUnknown(404, {}, ""), Exit.NO_SUCH_JOB),
        (JobGone(410, {}, ""), Exit.NO_SUCH_JOB),
        (NotUnderstood(200, {}, ""), Exit.NO_ANSWER),
        (Unreachable(""), Exit.NO_ANSWER),
        (ClientError(""), Exit.USAGE),
    ],
)
def test_every_error_of_the_client_has_its_exit_code(error: ClientError, code: Exit) -> None:
    """What may go away by itself is told apart from what has to be mended."""
    assert exit_of(error) is code


def test_no_refusal_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A server may put anything into a problem, or stand at an address that holds anything."""
    evil = "\x1b[2J"
    problem = {"detail": evil, "errors": [{"pointer": evil, "detail": evil}]}
    for error in (ApiError(422, problem, ""), ApiError(422, {}, evil), Unreachable(evil), ClientError(evil)):
        tell_error(error, as_json=True)
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert shown.err.count(r"\x1b[2J") == 6
    assert [json.loads(each)["error"]["detail"] for each in shown.out.splitlines()] == [evil] * 4


def test_a_fault_of_ours_is_no_failed_job(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Python's own exit code for a traceback is 1, which is the one of a failed job."""
    monkeypatch.setattr("aj.cli.secrets.say", lambda *_: 1 / 0)
    assert main(["secret", "new"]) == Exit.CRASHED
    assert "ZeroDivisionError" in capsys.readouterr().err


def _without(libraries: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """`aj arguments` where these libraries are not installed."""
    script = f"""
import importlib.machinery, sys
class Hidden(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in {libraries!r} else super().find_spec(name, path, target)
sys.meta_path[:] = [Hidden if each is importlib.machinery.PathFinder else each for each in sys.meta_path]
from aj.cli import main
sys.exit(main({list(arguments)!r}))
"""
    return subprocess.run(
        [sys.executable, "-c", script], env=clean_env({}), cwd=ROOT, capture_output=True, text=True, check=False
    )
