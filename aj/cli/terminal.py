"""Where the command line speaks: data on standard output, talk on standard error. The edge that reads `TERM`.

Talk that nobody hears is no reason to stop; data that cannot be written are.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from aj.cli.text import cut, json_text
from aj.errors import AjError

_COLOURS = {"green": "32", "red": "31", "yellow": "33"}
NARROWEST, USUAL = 20, 80
START_OF_LINE, REST_OF_LINE_AWAY = "\r", "\x1b[K"
CLEAR = START_OF_LINE + REST_OF_LINE_AWAY


class Unwritten(AjError):
    """Standard output takes no more. `reader_has_gone` where that is because nobody reads it."""

    def __init__(self, reason: str, reader_has_gone: bool) -> None:
        super().__init__(reason)
        self.reader_has_gone = reader_has_gone


@dataclass(frozen=True, slots=True)
class Screen:
    """What a stream can do: whether a person looks at it, and whether its cursor and its colours can be moved."""

    stream: TextIO | None
    is_terminal: bool = False
    is_live: bool = False
    has_colours: bool = False

    @classmethod
    def of(cls, stream: TextIO | None, environ: Mapping[str, str]) -> Screen:
        """`NO_COLOR` takes the colours away (https://no-color.org), `TERM=dumb` all movement too."""
        is_terminal = stream is not None and stream.isatty()
        is_live = is_terminal and environ.get("TERM", "dumb") != "dumb"
        return cls(stream, is_terminal, is_live, is_live and not environ.get("NO_COLOR"))

    @property
    def columns(self) -> int:
        """How wide it is now, asked anew each time, since windows change."""
        found = 0
        if self.stream is not None:
            with contextlib.suppress(OSError, ValueError):
                found = os.get_terminal_size(self.stream.fileno()).columns
        return max(found, NARROWEST) if found else USUAL

    def painted(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.has_colours else text

    def tell_over(self, line: str) -> None:
        """Writes a line in the place of one that may be drawn again and again."""
        self.tell((CLEAR if self.is_live else "") + line + "\n")

    def fitted(self, line: str) -> str:
        """`line` as far as it fits on a terminal; whole where it goes into a file."""
        return cut(line, self.columns) if self.is_terminal else line

    def write(self, text: str) -> None:
        """Writes `text` at once. Raises: OSError, ValueError."""
        if self.stream is not None:
            self.stream.write(text)
            self.stream.flush()

    def tell(self, text: str) -> None:
        """Writes `text` where it can be written; nobody hears the rest."""
        try:
            self.write(text)
        except (OSError, ValueError):
            let_go(self.stream)


def output() -> Screen:
    return Screen.of(sys.stdout, os.environ)


def talk_to() -> Screen:
    return Screen.of(sys.stderr, os.environ)


def say(*lines: str) -> None:
    """Writes data. Raises: Unwritten: it cannot be written."""
    if sys.stdout is None:
        raise Unwritten("it is closed", reader_has_gone=False)
    try:
        output().write("".join(f"{line}\n" for line in lines))
    except OSError as error:
        let_go(sys.stdout)
        raise Unwritten(error.strerror or "unknown", isinstance(error, BrokenPipeError)) from None


def say_json(value: object) -> None:
    """Writes one JSON document, on one line."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    say(json_text(value, only_ascii=encoding.lower().replace("-", "") != "utf8"))


def talk(*lines: str) -> None:
    """Tells the person who waits."""
    talk_to().tell("".join(f"{line}\n" for line in lines))


def talk_over(line: str) -> None:
    """Tells it in the place of a line that may be drawn again and again there."""
    talk_to().tell_over(line)


def take_any_text() -> None:
    """Lets both streams write what their encoding lacks, as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def let_go(stream: TextIO | None) -> None:
    """Sends a stream nowhere, with what waits in its buffer, which would fail again at the end of the process."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        descriptor = stream.fileno()  # type: ignore[union-attr]
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
