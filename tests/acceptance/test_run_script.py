"""The decisions of the shell script `run`: which Python, when to install, what counts as installed.

A Python, a pip and a uv that only note how they were called stand in for the real ones, so that nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT

TOOLS = ("sh", "cat", "cksum", "cp", "dirname", "mkdir", "rm")
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) exit {too_old} ;;
    *sys.version.split*) echo "{version}"; exit 0 ;;
    *_base_executable*) echo "${{BASE_PYTHON:-$0}}"; exit 0 ;;
    *ensurepip*) [ ! -e "$NOTES.no-ensurepip" ]; exit ;;
    *fcntl*) exec {real_python} "$@" ;;
    --version) echo "Python {version}"; exit 0 ;;
esac
echo "python $*" >>"$NOTES"
case "$*" in
    "-m venv .venv") [ ! -e "$NOTES.venv-fails" ] && mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip install"*)
        [ ! -p "$NOTES.pip-waits" ] || read -r _ <"$NOTES.pip-waits"
        [ ! -e "$NOTES.pip-fails" ]
        ;;
    "-m ruff check"*) [ ! -e "$NOTES.ruff-fails" ] ;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >>"$NOTES"
case "$1" in venv) mkdir -p .venv/bin && cp "$4" .venv/bin/python ;; esac
"""
MADE_WITH_PIP = [
    "python -m venv .venv",
    "python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt",
]


class Clone:
    """A clone of the project in a folder with a space in its name, on a machine with the given programs."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "a clone"
        self.programs = folder / "bin"
        self.notes = folder / "notes"
        self.home.mkdir()
        self.programs.mkdir()
        shutil.copy(ROOT / "run", self.home / "run")
        (self.home / "requirements.txt").write_text("flask==3.1.3 --hash=sha256:0\n", encoding="ascii")
        for tool in TOOLS:
            (self.programs / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")

    def add(self, name: str, text: str) -> Path:
        program = self.programs / name
        program.write_text(text, encoding="ascii")
        program.chmod(0o755)
        return program

    def add_python(self, name: str, version: str, too_old: bool = False) -> Path:
        return self.add(name, PYTHON.format(version=version, too_old=int(too_old), real_python=sys.executable))

    def start(self, *arguments: str, cwd: str = "/", **env: str) -> subprocess.Popen[str]:
        """Starts the script from another folder, its standard input closed as CI does."""
        return subprocess.Popen(
            ["sh", "-c", 'exec "$@" <&-', "-", "sh", str(self.home / "run"), *arguments],
            cwd=cwd,
            env={"PATH": str(self.programs), "NOTES": str(self.notes), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, cwd: str = "/", **env: str) -> subprocess.CompletedProcess[str]:
        """Runs the script to its end."""
        process = self.start(*arguments, cwd=cwd, **env)
        stdout, stderr = process.communicate(timeout=30)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def mark(self, name: str) -> Path:
        """Changes how the programs behave."""
        marker = self.notes.with_name(f"notes.{name}")
        marker.touch()
        return marker

    def noted(self) -> list[str]:
        """How the programs were called since the last time that this was asked."""
        noted = self.notes.read_text(encoding="utf-8").splitlines() if self.notes.exists() else []
        self.notes.unlink(missing_ok=True)
        return noted


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_first_call_installs_and_the_next_only_runs(clone: Clone) -> None:
    """The second start says nothing and installs nothing; arguments are passed on."""
    clone.add_python("python3", "3.12.1")
    first = clone.run("test", "-k", "a b")
    assert first.stderr == "run: making .venv with Python 3.12.1, only this once\n"
    assert clone.noted() == [*MADE_WITH_PIP, "python -m pytest -k a b"]
    second = clone.run("demo")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert clone.noted() == ["python -m aj.local demo"]


def test_a_changed_lock_or_python_is_installed_anew(clone: Clone) -> None:
    """What is installed is what the lock says, for the Python that runs it."""
    clone.add_python("python3.12", "3.12.1")
    clone.run("setup")
    clone.noted()
    (clone.home / "requirements.txt").write_text("flask==3.1.4 --hash=sha256:1\n", encoding="ascii")
    clone.run("setup")
    assert clone.noted() == MADE_WITH_PIP
    other = clone.add_python("other python", "3.13.0")
    assert clone.run("setup", PYTHON=str(other)).returncode == 0
    assert clone.noted() == MADE_WITH_PIP
    clone.run("setup")
    assert clone.noted() == []


def test_an_install_that_failed_is_not_taken_for_a_finished_one(clone: Clone) -> None:
    """The script ends with an error and runs nothing; the next call installs again."""
    clone.add_python("python3", "3.11.9")
    failing = clone.mark("pip-fails")
    assert clone.run("up").returncode != 0
    assert clone.noted() == MADE_WITH_PIP
    failing.unlink()
    assert clone.run("up").returncode == 0
    assert clone.noted() == [*MADE_WITH_PIP, "python -m aj.local up"]


def test_uv_installs_where_it_is(clone: Clone) -> None:
    """It is an order of magnitude faster; hashes are checked all the same."""
    python = clone.add_python("python3.11", "3.11.9")
    clone.add("uv", UV.replace("$4", str(python)))
    assert clone.run("setup").returncode == 0
    assert clone.noted() == [
        f"uv venv --quiet --python {python} .venv",
        "uv pip sync --quiet --require-hashes --python .venv/bin/python requirements.txt",
    ]


def test_a_python_that_is_too_old_is_passed_over(clone: Clone) -> None:
    """The newest name comes first, and `python3` may be anything."""
    clone.add_python("python3", "3.9.2", too_old=True)
    clone.add_python("python3.12", "3.12.1")
    clone.add_python("python3.13", "3.13.0")
    assert "Python 3.13.0" in clone.run("setup").stderr


def test_a_machine_without_a_python_is_told_how_to_get_one(clone: Clone) -> None:
    """One line, and nothing is left behind."""
    clone.add_python("python3", "3.9.2", too_old=True)
    done = clone.run("demo")
    assert done.returncode == 1
    assert done.stderr.startswith("run: no Python 3.11 or newer is here; install one (apt-get install python3")
    assert done.stderr.count("\n") == 1
    assert not (clone.home / ".venv").exists()


def test_a_python_that_was_asked_for_is_never_replaced_by_another(clone: Clone) -> None:
    """PYTHON is refused by its value, although a good one is on PATH."""
    clone.add_python("python3", "3.12.1")
    old = clone.add_python("old", "3.9.2", too_old=True)
    done = clone.run("setup", PYTHON=str(old))
    assert done.returncode == 1
    assert done.stderr == f"run: PYTHON is '{old}', which is not a Python 3.11 or newer that runs\n"


def test_check_stops_at_the_first_thing_that_is_wrong(clone: Clone) -> None:
    """A failed step is a failed check, whatever would come after it."""
    clone.add_python("python3", "3.12.1")
    clone.run("check")
    assert [line.split()[2] for line in clone.noted()[2:]] == ["ruff", "ruff", "mypy", "pytest"]
    clone.mark("ruff-fails")
    assert clone.run("check").returncode == 1
    assert clone.noted() == ["python -m ruff check ."]


@pytest.mark.parametrize("arguments", [(), ("strat",)])
def test_a_command_that_is_none_is_answered_with_those_that_are(clone: Clone, arguments: tuple[str, ...]) -> None:
    """Nothing is installed for a spelling mistake."""
    done = clone.run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "  demo " in done.stderr
    assert clone.noted() == []


@pytest.mark.parametrize("asked", ["help", "--help", "-h"])
def test_help_says_in_a_line_what_each_command_does(clone: Clone, asked: str) -> None:
    """It is asked for, so it goes to standard output; it needs no Python."""
    done = clone.run(asked)
    assert (done.returncode, done.stderr) == (0, "")
    commands = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert commands == ["demo", "up", "test", "check", "bounds", "bench", "chaos", "setup", "help"]


@pytest.mark.parametrize(
    ("command", "module"), [("bounds", "tests.bounds"), ("chaos", "tests.chaos"), ("bench", "bench")]
)
def test_what_is_a_program_of_its_own_is_passed_on(clone: Clone, command: str, module: str) -> None:
    """With its options, as they are."""
    clone.add_python("python3", "3.12.1")
    assert clone.run(command, "--minutes", "3").returncode == 0
    assert clone.noted()[-1] == f"python -m {module} --minutes 3"


def test_two_in_a_fresh_clone_install_once(clone: Clone) -> None:
    """The second waits and says so, and then finds what the first has made, instead of removing it under its feet."""
    clone.add_python("python3", "3.12.1")
    gate = clone.notes.with_name("notes.pip-waits")
    os.mkfifo(gate)
    first = clone.start("demo")
    with gate.open("w", encoding="ascii") as opened:  # opens when the first is installing
        second = clone.start("up")
        assert second.stderr is not None
        assert second.stderr.readline() == "run: waiting for another ./run, which makes .venv\n"
        opened.write("go\n")
    assert first.communicate(timeout=30)[1].startswith("run: making .venv")
    assert second.communicate(timeout=30)[1] == ""
    assert (first.returncode, second.returncode) == (0, 0)
    assert sorted(clone.noted()) == sorted([*MADE_WITH_PIP, "python -m aj.local demo", "python -m aj.local up"])


def test_an_install_that_was_killed_holds_up_nobody(clone: Clone) -> None:
    """The lock ends with the processes that hold it; nothing has to be found stale."""
    clone.add_python("python3", "3.12.1")
    gate = clone.notes.with_name("notes.pip-waits")
    os.mkfifo(gate)
    first = clone.start("setup")
    with gate.open("w", encoding="ascii"):  # closed again without a word, which ends the stand-in for pip
        first.kill()
        first.wait(30)
    first.communicate(timeout=30)
    gate.unlink()
    done = clone.run("setup")
    assert done.returncode == 0
    assert done.stderr.endswith("run: making .venv with Python 3.12.1, since the last attempt was cut short\n")


def test_the_reason_is_told_when_venv_is_made_anew(clone: Clone) -> None:
    """Minutes of installing want an explanation."""
    clone.add_python("python3.12", "3.12.1")
    clone.run("setup")
    (clone.home / "requirements.txt").write_text("flask==3.1.4 --hash=sha256:1\n", encoding="ascii")
    assert clone.run("setup").stderr.endswith("since requirements.txt has changed\n")
    other = clone.add_python("other", "3.13.0")
    assert clone.run("setup", PYTHON=str(other)).stderr.endswith("since it was made with another Python\n")


def test_debians_package_is_named_only_where_it_is_missing(clone: Clone) -> None:
    """A full disk is not mended by apt-get."""
    clone.add_python("python3", "3.12.1")
    clone.mark("venv-fails")
    other = clone.run("setup")
    assert other.returncode == 1
    assert "apt-get" not in other.stderr
    clone.mark("no-ensurepip")
    missing = clone.run("setup")
    assert missing.returncode == 1
    assert missing.stderr.endswith("(on Debian and Ubuntu: apt-get install python3-venv)\n")


def test_a_clone_that_cannot_be_written_is_named_with_the_cause(clone: Clone) -> None:
    """The cause is the system's own word."""
    clone.add_python("python3", "3.12.1")
    (clone.home / ".venv.lock").mkdir()  # a read-only file system says another word, in the same place
    done = clone.run("demo")
    assert done.returncode == 1
    assert done.stderr == f"run: cannot write in {clone.home} (Is a directory), where .venv has to be made\n"


def test_a_relative_python_is_meant_from_where_the_user_stands(clone: Clone) -> None:
    """The script works in its own folder, and the user need not be there."""
    clone.add_python("mine", "3.13.5")
    assert "Python 3.13.5" in clone.run("setup", cwd=str(clone.programs), PYTHON="./mine").stderr
    wrong = clone.run("setup", cwd=str(clone.programs), PYTHON="no/such")
    assert wrong.stderr == f"run: PYTHON is '{clone.programs}/no/such', which is not a Python 3.11 or newer that runs\n"


def test_venv_is_made_by_a_python_that_does_not_go_with_it(clone: Clone) -> None:
    """With an activated .venv the first Python on PATH is the one that is about to be removed."""
    base = clone.add_python("base", "3.12.1")
    clone.add_python("python3", "3.12.1")
    uv = UV.replace("$4", str(base))
    clone.add("uv", uv)
    assert clone.run("setup", BASE_PYTHON=str(base)).returncode == 0
    assert clone.noted()[0] == f"uv venv --quiet --python {base} .venv"
