"""The command line: `aj …`, or `python -m aj …` in a clone. Reads its arguments and calls one thing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from aj.access import new_key
from aj.errors import SettingsError
from aj.settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what `arguments` ask, those of the process where there are none; gives the exit code."""
    parser = argparse.ArgumentParser(prog="aj")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    key = commands.add_parser("key", help="API keys of callers").add_subparsers(required=True, metavar="ACTION")
    new = key.add_parser("new", help="make an API key for a caller, and show what goes into AJ_API_KEYS")
    new.add_argument("name", help="what the caller is called: letters, digits, dots, dashes, underscores")
    return make_key(parser.parse_args(arguments).name)


def make_key(name: str) -> int:
    """Prints a fresh key once, for the caller, and its hash, for the configuration."""
    key, digest = new_key()
    try:
        Settings.from_env({"AJ_API_KEYS": f"{name}:{digest}"})
    except SettingsError:
        print(f"aj: {name!r} is no name for a caller", file=sys.stderr)
        return 2
    print(f"for the caller, shown only now:  {key}")
    print(f"to add to AJ_API_KEYS:           {name}:{digest}")
    return 0
