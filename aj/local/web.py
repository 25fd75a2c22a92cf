"""The API's assembly in a web process: settings, store, app. `aj.local.web:make_app()` is what gunicorn serves."""

from __future__ import annotations

import os
import sys

from flask import Flask

from aj.app import create_app
from aj.errors import SettingsError
from aj.local.embedded import ensure_store
from aj.settings import Settings
from aj.store import connect, refuse_unfit


def make_app() -> Flask:
    """The API as the environment asks for it, its store running.

    A setting that is wrong ends the process with one line and exit code 2.
    """
    try:
        settings = ensure_store(Settings.from_env(os.environ), os.environ)
        refuse_unfit(connect(settings.redis_url))
        return create_app(settings)
    except SettingsError as error:
        print(f"aj: {error}", file=sys.stderr)
        raise SystemExit(2) from None
