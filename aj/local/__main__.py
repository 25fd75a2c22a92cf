"""`python -m aj.local up` and `python -m aj.local demo`. The process edge of both: it reads the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from aj.extras import require_server
from aj.processes import die_at_interrupt

if __name__ == "__main__":
    die_at_interrupt()  # before the rest is loaded, which takes a moment
    require_server()

from aj.errors import SettingsError
from aj.local.demo import demo
from aj.local.output import Unheard
from aj.local.up import up

COMMANDS = {"demo": demo, "up": up}


def main(arguments: Sequence[str]) -> int:
    """The exit code of the command that was asked for; 2 where it cannot start."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print("usage: ./run demo, or ./run up; settings come from the environment", file=sys.stderr)
        return 2
    try:
        return COMMANDS[arguments[0]](os.environ)
    except SettingsError as error:
        print(f"aj: {error}", file=sys.stderr)
        return 2
    except Unheard:
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
