"""Commands that want a host of their own (root, systemd, Docker): they are judged by what they name, and not run.

So a file that was renamed, a unit that cannot reload or an extra that is gone is found; a typing error in an option of
`useradd` is not.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from itertools import pairwise

from tests.docs.deployed import DEPLOY, unit_of
from tests.support.pip_stand_in import main as pip
from tests.support.processes import ROOT

# The unit of Debian's package, after which ours are started.
STORE = "redis-server.service"


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
    names = [_unit(each) for each in rest if each != "--now"]
    if names == [STORE]:
        return verb == "restart"
    return (
        verb in ("enable", "reload", "restart", "status")
        and all((DEPLOY / name).is_file() for name in names)
        and (verb != "reload" or all("ExecReload" in unit_of(name) for name in names))
    )


def _unit(name: str) -> str:
    """The file of a unit, of which there may be several: `shop-worker@1`, `shop-worker@*`."""
    name, at, _ = name.partition("@")
    return f"{name}{at}.service"


def _journal(arguments: list[str]) -> bool:
    units = [_unit(word) for option, word in pairwise(arguments) if option == "-u"]
    return bool(units) and all((DEPLOY / each).is_file() for each in units)


def _echo(arguments: list[str]) -> bool:
    """A line for a file of the host, which names one that a command has copied there."""
    line, target = arguments
    return line == "include /etc/redis/shop.conf" and target.startswith(">>/etc/")


def _curl(arguments: list[str]) -> bool:
    return arguments[-1].startswith("http://127.0.0.1:8000/api/")


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
    "journalctl": _journal,
    "echo": _echo,
    "curl": _curl,
    "redis-cli": lambda arguments: arguments[0] == "-u" and arguments[2] == "--rdb",
    "apt-get": lambda arguments: arguments == ["install", STORE.removesuffix(".service")],
    "useradd": lambda arguments: arguments[-1:] == ["shop"],
}
