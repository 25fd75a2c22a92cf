"""`python -m aj.key new NAME`: makes an API key for a caller, and shows what goes into `AJ_API_KEYS`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from aj.access import new_key
from aj.errors import SettingsError
from aj.settings import Settings


def main(arguments: Sequence[str]) -> int:
    """Prints the key once, for the caller, and its hash, for the configuration; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m aj.key", description="Makes API keys.")
    parser.add_argument("action", choices=["new"])
    parser.add_argument("name", help="what the caller is called: letters, digits, dots, dashes, underscores")
    asked = parser.parse_args(arguments)
    key, digest = new_key()
    try:
        Settings.from_env({"AJ_API_KEYS": f"{asked.name}:{digest}"})
    except SettingsError:
        print(f"aj: {asked.name!r} is no name for a caller", file=sys.stderr)
        return 2
    print(f"for the caller, shown only now:  {key}")
    print(f"to add to AJ_API_KEYS:           {asked.name}:{digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
