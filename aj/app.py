"""Assembly of the API as an app of its own."""

from __future__ import annotations

import os

from flask import Flask

from aj.blueprint import JobsBlueprint
from aj.settings import Settings
from aj.short_cut import ShortCut


def create_app(settings: Settings | None = None) -> Flask:
    """A Flask app that serves the contract and nothing else. Without `settings` the environment gives them.

    Raises: SettingsError: a setting is wrong, no store is named, or tasks cannot be loaded.
    """
    if settings is None:
        settings = Settings.from_env(os.environ)
    app = Flask("aj", static_folder=None)
    blueprint = JobsBlueprint(settings, owns_app=True)
    app.register_blueprint(blueprint)
    app.wsgi_app = ShortCut(app, blueprint.name)  # type: ignore[method-assign]
    return app
