"""What the commands print. Nobody reading it any more, or a full disk, is an end and no crash."""

from __future__ import annotations

import contextlib
import os
import sys

from aj.errors import AjError


class Unheard(AjError):
    """What was to be printed could not be written. From then on printing does nothing."""


def say(*lines: str) -> None:
    """Prints the lines, and what was printed before, at once.

    Raises: Unheard: they cannot be written; standard error has the reason, unless it is that the reader has gone.
    """
    try:
        print(*lines, sep="\n", flush=True)
    except OSError as error:
        _mute()
        if not isinstance(error, BrokenPipeError):
            with contextlib.suppress(OSError):
                print(f"aj: nothing can be printed: {error.strerror}", file=sys.stderr, flush=True)
        raise Unheard("nothing can be printed") from None


def _mute() -> None:
    """Sends standard output nowhere, with what waits in its buffer, which would fail again at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
