"""Somebody's Flask app, as a worker meets it: it mounts the API, and does to its process what apps do."""

from __future__ import annotations

import logging.config
import signal
from pathlib import Path

from flask import Flask, current_app

from aj import JobsBlueprint


def make_app() -> Flask:
    """Its config comes from the environment, `HOST_NOTES` and our settings; it notes how each context ended."""
    logging.config.dictConfig({"version": 1})  # which disables every logger that there is
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    app = Flask("host")
    app.config.from_prefixed_env("HOST")
    app.config.from_prefixed_env("AJ")
    app.teardown_appcontext(_note)
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    return app


def _note(error: BaseException | None) -> None:
    with Path(current_app.config["NOTES"]).open("a") as notes:
        notes.write(f"{type(error).__name__}\n")
