"""`python -m aj.api`: becomes a gunicorn that serves the API, also where only the package is installed.

It loads no app itself: gunicorn does, once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from aj.local.parts import serve_api


def main(arguments: Sequence[str]) -> None:
    """Replaces this process by gunicorn; `arguments` are options of gunicorn, and win over ours."""
    command = serve_api(*arguments)
    os.execv(command[0], command)  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    main(sys.argv[1:])
