"""The application that the files of this folder deploy: one page, and the API for its jobs below `/api`.

Put your own in its place. It answers below whatever prefix the proxy before it takes away.
"""

from __future__ import annotations

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from aj import JobsBlueprint


def create_app() -> Flask:
    """The application as web processes and workers load it; `AJ_…` in the environment says the rest."""
    app = Flask(__name__)
    app.config["WEB_THREADS"] = 64  # as many as gunicorn.conf.py says
    app.config.from_prefixed_env("AJ")
    app.add_url_rule("/", "home", lambda: "The shop is open.\n")
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    # One proxy stands before us; what it says of host, scheme and prefix is believed, and nobody else may reach us.
    app.wsgi_app = ProxyFix(app.wsgi_app, x_host=1, x_prefix=1)
    return app
