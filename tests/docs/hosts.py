"""Commands that want a host of their own (root, systemd, Docker): they are judged by what they name, and not run.

So a file that was renamed, a unit that cannot reload or an extra that is gone is found; a typing error in an option of
`useradd` is not.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from tests.docs.deployed import DEPLOY, unit_of
from tests.support.pip_stand_in import main as pip
from tests.support.processes import ROOT


def check_command(line: str) -> None:
    """Fails where the command names a file, a unit or an extra that this project does not have, or is none we know."""
    program, *arguments = shlex.split(line)
    check = CHECKS.get(program.rpartition("/")[2])
    assert check is not None, f"nobody knows how to judge `{line}`"
    assert check(arguments), f"`{line}` names what is not there"


def _copies(arguments: list[str]) -> bool:
    ours = [each for each in arguments if each.startswith("deploy/")]
    return bool(ours) and all((ROOT / each).exists() for each in ours)


def _system(arguments: list[str]) -> bool:
    verb, *rest = arguments
    if verb == "daemon-reload":
        return not rest
    units = [each.partition("@") for each in rest if each != "--now"]
    names = [f"{name}{at}.service" for name, at, _ in units]
    return (
        verb in ("enable", "reload", "restart")
        and all((DEPLOY / name).is_file() for name in names)
        and (verb != "reload" or all("ExecReload" in unit_of(name) for name in names))
    )


def _docker(arguments: list[str]) -> bool:
    return arguments[:2] == ["compose", "-f"] and (ROOT / arguments[2]).is_file() and arguments[3] == "up"


def _pip(arguments: list[str]) -> bool:
    if arguments[0] != "wheel":
        return pip(arguments) == 0
    return arguments[:3] == ["wheel", "--no-deps", "--wheel-dir"] and (ROOT / arguments[3]).parent == DEPLOY / "app"


CHECKS: dict[str, Callable[[list[str]], bool]] = {
    "run": lambda arguments: f" {arguments[0]} " in (ROOT / "run").read_text("utf-8"),
    "cp": _copies,
    "install": _copies,
    "docker": _docker,
    "pip": _pip,
    "python3": lambda arguments: arguments[:2] == ["-m", "venv"] and len(arguments) == 3,
    "systemctl": _system,
    "useradd": lambda arguments: arguments[-1:] == ["shop"],
}
