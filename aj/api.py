"""`python -m aj.api`: becomes a gunicorn that serves the API, also where only the package is installed.

It loads no app itself: gunicorn does, once.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence

from aj.extras import require_server
from aj.processes import die_at_interrupt

if __name__ == "__main__":
    die_at_interrupt()  # before the rest is loaded, which takes a moment
    require_server()

from aj.local.parts import api_options


def main(arguments: Sequence[str]) -> None:
    """Turns this process into gunicorn; `arguments` are options of gunicorn, and win over ours."""
    sys.argv[1:] = api_options(*arguments)
    runpy.run_module("gunicorn", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
