"""hooksink: a receiver of webhooks that keeps a receipt of each in a log.

`hooksink.app` is the WSGI application for `gunicorn hooksink:app`. It is built when it is first asked for: importing
the package reads no environment. Nothing else is public; an application that wants a receiver of its own making
calls `hooksink.receiver.create_app`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from flask import Flask

from aj.errors import SettingsError
from aj.settings import Settings
from hooksink.receiver import create_app

LOG_DEFAULT = "hook.log"


def app_from_env(environ: Mapping[str, str]) -> Flask:
    """The receiver that the environment asks for; a relative `HOOKSINK_LOG` is resolved here, once.

    Raises: SettingsError: a setting is wrong, or the log cannot be used.
    """
    return create_app(Settings.from_env(environ), os.path.abspath(environ.get("HOOKSINK_LOG") or LOG_DEFAULT))


def __getattr__(name: str) -> Flask:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        built = app_from_env(os.environ)
    except SettingsError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    globals()["app"] = built
    return built
