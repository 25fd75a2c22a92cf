"""`pip install` for the pages that are played: installs nothing, and fails where a reader's would.

That the package installs, and what is in it, is another test's subject; here its extras have to exist.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

OURS = re.compile(r"(?:flask-aj|/path/to/this/clone)(?:\[([a-z,]+)\])?")
OPTIONS = ("--no-cache-dir", "--quiet")


def main(arguments: list[str]) -> int:
    asked, _, file = " ".join(each for each in arguments if each not in OPTIONS).partition(" -r ")
    words = asked.split()
    if words[:1] != ["install"]:
        return 2
    wanted = [*words[1:], *(_lines(Path(file)) if file else [])]
    wrong = [each for each in wanted if not _is_ours(each)]
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong or not wanted else 0


def _lines(file: Path) -> list[str]:
    lines = file.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith(("#", "--find-links "))]


def _is_ours(requirement: str) -> bool:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text("utf-8"))["project"]
    found = OURS.fullmatch(requirement)
    extras = found[1].split(",") if found and found[1] else []
    return found is not None and set(extras) <= set(project["optional-dependencies"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
