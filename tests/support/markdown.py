"""Markdown pages as data: their fenced blocks, in order, and what is to be done with each. Reads text, runs nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ROOT

NAMED = ("terminal", "shows")
LANGUAGES = ("css", "dockerfile", "html", "ini", "js", "nginx", "procfile", "python", "sh", "yaml")


@dataclass(frozen=True, slots=True)
class Command:
    """One line behind a `$`, and what it is to print; `""` where the page does not say."""

    line: str
    output: str


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: the words of its info string, its text, and the line of the page on which it begins."""

    page: str
    line: int
    words: tuple[str, ...]
    text: str

    @property
    def kind(self) -> str:
        """What is done with it; `"nothing"` where its info string says nothing that anybody would do.

        `play` runs commands and compares what they print, `terminal` starts one in a terminal of its own, `shows` is
        what such a terminal shows by now, `host` checks commands that want a whole host. `file` is saved in the
        reader's folder, `shown` is part of a file of this project.
        """
        language, rest = (self.words or ("",))[0], self.words[1:]
        if language == "console":
            return {(): "play", ("host",): "host"}.get(rest) or (rest[0] if rest[0] in NAMED else "nothing")
        if language in LANGUAGES and len(rest) == 1:
            return "shown" if (ROOT / rest[0]).is_file() and "/" in rest[0] else "file"
        return "nothing"

    @property
    def commands(self) -> list[Command]:
        """What stands behind each `$` at the beginning of a line; a line that ends with a backslash goes on."""
        found = re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n?(.*?)(?=^\$ |\Z)", self.text, re.DOTALL | re.MULTILINE)
        return [Command(line, output.strip("\n")) for line, output in found]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, which is named from the root of the project."""
    found: list[Block] = []
    fence: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate((ROOT / page).read_text("utf-8").splitlines(), start=1):
        if fence is not None and line.strip() == "```":
            found.append(Block(page, fence[0], tuple(fence[1].split()), "".join(lines)))
            fence = None
        elif fence is not None:
            lines.append(line + "\n")
        elif line.lstrip().startswith("```"):
            fence, lines = (number, line.strip().removeprefix("```")), []
    assert fence is None, f"{page}:{fence} has no end"
    return found


def pages() -> list[str]:
    """Every page for readers: README.md and what is in docs/."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in Path(ROOT, "docs").glob("*.md"))]
