"""How gunicorn serves the API and the receiver, however it is started: a gunicorn configuration module.

The environment is read here, when gunicorn loads this file, since a gunicorn process is a process edge.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any

from aj.errors import SettingsError
from aj.local.watch import watch_store
from aj.settings import Settings

JSON_LOGGER = "aj.local.gunicorn_logs.JsonLogger"
# Clients between two requests that a process keeps beside those that it serves.
KEPT_ALIVE = 1000
# For the store, the listener, logs and the like.
OTHER_FILES = 200


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


def connections(threads: int) -> int:
    """How many clients a process may be connected to: fewer than it may open files, since without them it dies.

    The soft limit is 1024 in most shells, and 256 on macOS, for the sake of programs that cannot use more; ours can, so
    it is raised as far as the hard one lets.
    """
    wanted = KEPT_ALIVE + threads + OTHER_FILES
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < wanted:
        files = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    if files != resource.RLIM_INFINITY:
        wanted = min(wanted, files)
    return max(threads + 1, wanted - OTHER_FILES)


def on_starting(server: Any) -> None:
    """Refuses to serve the receiver where the API belongs, as a `gunicorn hooksink:app` without `-b` would.

    A gunicorn hook, called before the master listens. Where a platform gives a `PORT`, that one is the receiver's own.
    """
    is_receiver = str(getattr(server.app, "app_uri", "")).partition(":")[0] == "hooksink"
    is_given = os.environ.get("PORT") and "AJ_PORT" not in os.environ
    if is_receiver and not is_given and server.cfg.bind == [bind]:
        mend = f"-b 127.0.0.1:{_settings.hooksink_port}"
        print(f"hooksink: {bind} is the API's address (AJ_HOST, AJ_PORT); give another one: {mend}", file=sys.stderr)
        raise SystemExit(2)


def post_worker_init(worker: Any) -> None:
    """Sees to the embedded store from each web process, and to its waiting requests when it is to stop.

    A gunicorn hook, called once the app is loaded. The store is not seen to from the master: it forks, and a thread of
    it might hold a lock at that moment.
    """
    watch_store(_settings, os.environ)
    apis = getattr(worker.app.callable, "extensions", {}).get("aj", {})  # the receiver has none
    handle = signal.getsignal(signal.SIGTERM)

    def let_go_and_stop(signum: int, frame: FrameType | None) -> None:
        for api in apis.values():
            # In a thread, since the signal may strike whoever holds the lock that this needs.
            threading.Thread(target=api.waiting.let_go).start()
        if callable(handle):
            handle(signum, frame)

    signal.signal(signal.SIGTERM, let_go_and_stop)


try:
    _settings = Settings.from_env(os.environ)
    bind = address(_settings, os.environ)
except SettingsError as error:
    print(f"aj: {error}", file=sys.stderr)
    raise SystemExit(2) from None

logger_class = JSON_LOGGER if _settings.log == "json" else "gunicorn.glogging.Logger"  # which is gunicorn's default
worker_class = "aj.local.gunicorn_worker.DirectWorker"  # threads, for what is not answered at once
workers = _settings.web_workers
threads = _settings.web_threads
worker_connections = connections(threads)
preload_app = True  # a wrong setting stops the server with one line, instead of each worker that it starts
control_socket_disable = True  # the API and the receiver of one user would share its path
graceful_timeout = 10
forwarder_headers = ""  # else any client on this host could set SCRIPT_NAME by a header, and with it our Locations
keepalive = 75  # longer than the 60 s of usual load balancers, so that they close first and no request is lost
