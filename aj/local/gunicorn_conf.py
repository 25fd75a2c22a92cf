"""How gunicorn serves the API and the receiver, however it is started: a gunicorn configuration module.

The environment is read here, when gunicorn loads this file, since a gunicorn process is a process edge.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from aj.errors import SettingsError
from aj.settings import Settings


def address(settings: Settings, environ: Mapping[str, str]) -> str:
    """Where to listen: `AJ_HOST` and `AJ_PORT`; where `AJ_PORT` is not set, the `PORT` that a hosting platform gives.

    A platform that sets `PORT` sends its requests from outside, so that loopback would hear none of them.

    Raises: SettingsError: `PORT` is not a port.
    """
    host, port = settings.host, settings.port
    asked = environ.get("PORT", "")
    if asked and "AJ_PORT" not in environ:
        if not re.fullmatch("[0-9]{1,5}", asked) or not 1 <= int(asked) <= 65_535:
            raise SettingsError(f"PORT is {asked!r}; accepted: a whole number from 1 to 65535")
        port = int(asked)
        host = host if "AJ_HOST" in environ else "0.0.0.0"  # noqa: S104 (the platform asks for it)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


try:
    _settings = Settings.from_env(os.environ)
    bind = address(_settings, os.environ)
except SettingsError as error:
    print(f"aj: {error}", file=sys.stderr)
    raise SystemExit(2) from None

worker_class = "gthread"  # with one thread per process, a client that waits or reads slowly would stop all others
workers = _settings.web_workers
threads = _settings.web_threads
preload_app = True  # a wrong setting stops the server with one line, instead of each worker that it starts
control_socket_disable = True  # the API and the receiver of one user would share its path
graceful_timeout = 10
forwarder_headers = ""  # else any client on this host could set SCRIPT_NAME by a header, and with it our Locations
keepalive = 75  # longer than the 60 s of usual load balancers, so that they close first and no request is lost
