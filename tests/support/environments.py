"""Environments apart from the one that tests: the project as its users install it, never imported from the clone.

They are filled from the package index. Where it cannot be reached, a test is left out and says why; in CI it fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes import ROOT, clean_env

INSTALL_S = 300
# What an editor, a test or a build leaves in a clone. No source of ours has such a name.
LEFTOVERS = (".*", "__pycache__", "*.egg-info", "build", "dist")


class Unavailable(Exception):
    """This machine cannot make or fill an environment at the moment; the message says how it can."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A venv, and how a user calls what is in it: from a folder of his own."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin/python")

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def run(
        self, *command: str, cwd: Path, env: Mapping[str, str] | None = None, within_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Runs to its end; `command` begins with a program of this environment."""
        program, *arguments = command
        return subprocess.run(
            [self.program(program), *arguments],
            cwd=cwd,
            env=foreign_env(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )

    def install(self, *requirements: str) -> None:
        """Raises: Unavailable. RuntimeError: it cannot be installed; with pip's own words."""
        command = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1")
        done = self.run("python", *command, *requirements, cwd=self.folder, within_s=INSTALL_S)
        if done.returncode and "connection broken by" in done.stderr:
            raise Unavailable("the package index does not answer; with a network these run by themselves")
        if done.returncode:
            raise RuntimeError(done.stderr)


def foreign_env(extra: Mapping[str, str]) -> dict[str, str]:
    """An environment in which nothing leads to the clone."""
    return clean_env({"PYTHONPATH": "", **extra})


def make_environment(folder: Path, python: str = sys.executable) -> Environment:
    """A fresh venv, with pip and nothing else of use. Raises: Unavailable."""
    base = getattr(sys, "_base_executable", "") if python == sys.executable else ""
    command = [base or python, "-m", "venv", str(folder)]
    if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        raise Unavailable(f"{command[0]} cannot make a venv (on Debian and Ubuntu: apt-get install python3-venv)")
    return Environment(folder)


def environment_with(folder: Path, *requirements: str) -> Environment:
    """For a test, which is left out where there can be none; in CI it fails."""
    try:
        environment = make_environment(folder)
        environment.install(*requirements)
    except Unavailable as why:
        if os.environ.get("CI") == "true":
            pytest.fail(str(why))
        pytest.skip(str(why))
    return environment


def copy_of_clone(folder: Path) -> Path:
    """The source tree as an archive of it would be: no git, no caches, nothing that was built."""
    return Path(shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFTOVERS)))


def build(source: Path, into: Path, *kinds: str) -> None:
    """Builds an sdist, and a wheel from it, as a release is made; or what `kinds` say. Needs no network."""
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(into), str(source)]
    done = subprocess.run(
        command, env=foreign_env({}), cwd=source, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def the_one(folder: Path, pattern: str) -> Path:
    """The only file of that name."""
    (found,) = folder.glob(pattern)
    return found
