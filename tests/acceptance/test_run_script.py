"""The decisions of the shell script `run`: which Python, when to install, what counts as installed.

A Python, a pip and a uv that only note how they were called stand in for the real ones, so that nothing is installed.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import ROOT

TOOLS = ("sh", "cat", "cksum", "cp", "dirname", "mkdir", "rm")
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) exit {too_old} ;;
    *sys.version.split*) echo "{version}"; exit 0 ;;
    --version) echo "Python {version}"; exit 0 ;;
esac
echo "python $*" >>"$NOTES"
case "$*" in
    "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip install"*) [ ! -e "$NOTES.pip-fails" ] ;;
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
        return self.add(name, PYTHON.format(version=version, too_old=int(too_old)))

    def run(self, *arguments: str, shell: str = "sh", **env: str) -> subprocess.CompletedProcess[str]:
        """Runs the script from another folder, its standard input closed as CI does."""
        return subprocess.run(
            ["sh", "-c", '"$@" <&-', "-", shell, str(self.home / "run"), *arguments],
            cwd="/",
            env={"PATH": str(self.programs), "NOTES": str(self.notes), **env},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

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
    failing = clone.notes.with_name("notes.pip-fails")
    failing.touch()
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
        "uv venv --quiet --python python3.11 .venv",
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
    clone.notes.with_name("notes.ruff-fails").touch()
    assert clone.run("check").returncode == 1
    assert clone.noted() == ["python -m ruff check ."]


@pytest.mark.parametrize("arguments", [(), ("strat",)])
def test_a_command_that_is_none_is_answered_with_those_that_are(clone: Clone, arguments: tuple[str, ...]) -> None:
    """Nothing is installed for a spelling mistake."""
    done = clone.run(*arguments)
    assert done.returncode == 2
    assert "setup | demo | up | test" in done.stderr
    assert clone.noted() == []
