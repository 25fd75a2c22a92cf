"""`pip install flask-aj` alone: enough to talk to an API, and what is not is told in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.environments import Environment, environment_with, the_one
from tests.support.processes import ROOT

HINT = "pip install 'flask-aj[server]'"
PROCESSES = [("python", "-m", "aj.api"), ("python", "-m", "aj.worker"), ("python", "-m", "aj.local", "up")]
if (ROOT / "aj/cli/processes.py").exists():
    PROCESSES += [("aj", each) for each in ("up", "demo", "worker")]


def client_modules() -> list[str]:
    """The client, the command line and what else speaks to an API and is none."""
    found = (path for room in ("cli", "client", "check") for path in ROOT.glob(f"aj/{room}*") if path.name[0] != "_")
    files = (file for path in found for file in ([path] if path.suffix == ".py" else path.rglob("*.py")))
    return sorted(".".join(each.relative_to(ROOT).with_suffix("").parts) for each in files if each.stem != "__main__")


@pytest.fixture(scope="module")
def base(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environment_with(tmp_path_factory.mktemp("base") / "venv", str(the_one(built, "*.whl")))


def test_it_brings_two_libraries_and_what_they_need(base: Environment, folder: Path) -> None:
    """No framework, no Redis, no pydantic."""
    listed = json.loads(base.run("python", "-m", "pip", "list", "--format=json", cwd=folder).stdout)
    names = {each["name"].lower() for each in listed} - {"pip", "setuptools"}
    needed = {"click", "requests", "certifi", "charset-normalizer", "idna", "urllib3"}
    assert names - {"charset_normalizer", "flask_aj"} <= needed | {"flask-aj"}


def test_what_a_client_needs_can_be_imported(base: Environment, folder: Path) -> None:
    """From the environment, not from a clone."""
    names = [each.removesuffix(".__init__") for each in client_modules()]
    assert "aj.cli" in names
    code = f"import aj, {', '.join(names)}; from aj import TaskError, __version__; print(aj.__file__)"
    done = base.run("python", "-c", code, cwd=folder)
    assert done.stderr == ""
    assert Path(done.stdout.strip()).is_relative_to(base.folder)


def test_the_command_line_makes_a_key(base: Environment, folder: Path) -> None:
    """It asks no server."""
    assert "key" in base.run("aj", "--help", cwd=folder).stdout
    done = base.run("aj", "key", "new", "shop", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "shop:" in done.stdout


@pytest.mark.parametrize("command", [*PROCESSES, ("python", "-m", "hooksink")], ids=" ".join)
def test_a_process_that_needs_more_says_so_in_one_line(
    base: Environment, folder: Path, command: tuple[str, ...]
) -> None:
    """With what to type, and exit code 2."""
    done = base.run(*command, cwd=folder)
    (line,) = done.stderr.splitlines()
    assert line.startswith("hooksink: " if "hooksink" in command else "aj: ")
    assert line.endswith(HINT)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("name", ["JobsBlueprint", "create_app", "task"])
def test_a_name_that_needs_more_says_so(base: Environment, folder: Path, name: str) -> None:
    """As an ImportError that stands alone."""
    done = base.run("python", "-c", f"from aj import {name}", cwd=folder)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: aj.{name} needs the extra server, since ")
    assert last.endswith(HINT)
    assert done.stderr.count("Traceback") == 1
