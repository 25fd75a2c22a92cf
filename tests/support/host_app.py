"""A host: somebody's Flask app with a life of its own, in which the blueprint is a guest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask

HTML = "text/html; charset=utf-8"
PROBLEM = "application/problem+json"


def host_app(config: Mapping[str, Any]) -> Flask:
    """An app with a life of its own: a page, a form, and error pages in its own style."""
    app = Flask("host")
    app.config.update(config)
    app.add_url_rule("/", view_func=lambda: "home", endpoint="home")
    app.add_url_rule("/apiary", view_func=lambda: "bees", endpoint="bees", methods=["POST"])
    app.register_error_handler(404, lambda error: ("<h1>Lost?</h1>", 404))
    app.register_error_handler(405, lambda error: ("<h1>Not so</h1>", 405, {"Allow": error.valid_methods}))
    return app
