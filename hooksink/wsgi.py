"""The receiver as a WSGI application that the environment asks for. A process edge: importing it builds `app`."""

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
    """The receiver that `environ` asks for; a relative `HOOKSINK_LOG` is resolved here, once.

    A setting that is wrong, or a log that cannot be used, ends the process with one line and exit code 2.
    """
    try:
        return create_app(Settings.from_env(environ), os.path.abspath(environ.get("HOOKSINK_LOG") or LOG_DEFAULT))
    except SettingsError as error:
        print(f"hooksink: {error}", file=sys.stderr)
        raise SystemExit(2) from None


app = app_from_env(os.environ)
