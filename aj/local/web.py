"""The API's assembly in a web process: settings, store, app. `aj.local.web:make_app()` is what gunicorn serves."""

from __future__ import annotations

import os
import sys

from flask import Flask

from aj.app import create_app
from aj.errors import SettingsError
from aj.local.embedded import ensure_store
from aj.settings import Settings


def make_app() -> Flask:
    """The API as the environment asks for it, its store running.

    A setting that is wrong ends the process with one line and exit code 2.
    """
    try:
        return create_app(ensure_store(Settings.from_env(os.environ), os.environ))
    except SettingsError as error:
        print(f"aj: {error}", file=sys.stderr)
        raise SystemExit(2) from None
