"""The command line: `aj …`, or `python -m aj …` in a clone. Each command is loaded when it is called.

So `aj submit` needs only what a client needs, and nobody waits for what he does not use.
This file holds the way in, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from aj.processes import die_at_interrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what `arguments` ask, those of the process where there are none; gives the exit code."""
    if arguments is None:
        die_at_interrupt()  # before the rest is loaded, which takes a moment
    from aj.cli.root import run  # noqa: PLC0415 - that rest

    return run(arguments)
