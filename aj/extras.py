"""What needs the extra `server`, and what is said where it is not installed. Imports the standard library only.

Who only talks to an API installs `flask-aj`; who serves one, `flask-aj[server]`. The line that says so stands here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

# What the libraries of the extra `server` are imported as, and what those bring that we import too.
SERVER = (
    *("flask", "gunicorn", "hiredis", "http_sf", "jinja2", "pydantic", "pydantic_core"),
    *("redis", "rq", "urllib3", "werkzeug"),
)
EXIT_MISSING = 2


def hint(what: str, library: str) -> str:
    """The one line for whoever lacks `library`."""
    return f"{what} needs the extra server, since {library} is not installed: pip install 'flask-aj[server]'"


def is_of_server(module: str | None) -> bool:
    """Whether a module that could not be found would have come with the extra."""
    return module is not None and module.partition(".")[0] in SERVER


def require_server(who: str = "aj", libraries: Sequence[str] = SERVER) -> None:
    """Ends a process that lacks one of `libraries` with one line of `who` and exit code 2, before it loads the rest."""
    missing = next((name for name in libraries if find_spec(name) is None), None)
    if missing is not None:
        print(f"{who}: {hint('this', missing)}", file=sys.stderr)
        raise SystemExit(EXIT_MISSING)
