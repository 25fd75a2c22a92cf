"""`python -m hooksink`: becomes a gunicorn that serves the receiver on the loopback address.

Its options are those under which the API is served, spelled out, since the receiver can be run without the rest.
"""

from __future__ import annotations

import argparse
import os
import runpy
import signal
import sys
from collections.abc import Sequence

from aj.extras import require_server

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until gunicorn sets its own: Ctrl-C shows no traceback
    require_server("hooksink", ("flask", "gunicorn"))

from gunicorn.config import make_settings  # type: ignore[import-untyped]

from aj.errors import SettingsError
from aj.settings import Settings

DESCRIPTION = "Receives webhooks at any path, verifies them, and writes a receipt of each to a log. Takes no options."
EPILOG = """settings, from the environment:
  AJ_HOOKSINK_PORT    the port on 127.0.0.1 (8141)
  AJ_WEBHOOK_SECRETS  comma list of whsec_…; with it, only what is signed with one of them is taken
  HOOKSINK_LOG        the file of receipts (hook.log in the working folder)
  AJ_WEB_WORKERS      processes (2)
  AJ_WEB_THREADS      threads of each (256)
  AJ_LOG              text or json: the form of what is printed (text)
"""


def options(settings: Settings) -> list[str]:
    """What gunicorn is told."""
    values = {
        "bind": f"127.0.0.1:{settings.hooksink_port}",
        "worker-class": "gthread",
        "workers": settings.web_workers,
        "threads": settings.web_threads,
        "graceful-timeout": 10,
        "keep-alive": 75,
        "forwarder-headers": "",
    }
    # Preloaded, so that a log that cannot be used stops the process instead of each worker that it starts.
    flags = ["--preload"]
    if "control_socket_disable" in make_settings():  # older ones have no such socket
        flags.append("--no-control-socket")
    if settings.log == "json":
        flags.append("--logger-class=aj.local.gunicorn_logs.JsonLogger")
    return [*(f"--{name}={value}" for name, value in values.items()), *flags, "hooksink:app"]


def main(arguments: Sequence[str]) -> None:
    """Turns this process into gunicorn. A wrong setting or argument ends it with a line and exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m hooksink",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(arguments)
    try:
        sys.argv[1:] = options(Settings.from_env(os.environ))
    except SettingsError as error:
        print(f"hooksink: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    runpy.run_module("gunicorn", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
