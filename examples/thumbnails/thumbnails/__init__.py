"""A small application: upload a picture, and have thumbnails made of it, by a worker and not in the request.

It has pages, files and an error page of its own. `JobsBlueprint` adds the API for its jobs below `/api`, and the worker
runs the task inside this app: both are one application with one configuration.
"""

from __future__ import annotations

from pathlib import Path

from flask import Flask

from aj import JobsBlueprint
from thumbnails import views


def create_app() -> Flask:
    """The application as web server and worker both load it; the environment says what differs from the defaults.

    `THUMBNAILS_PICTURES` is the folder of the pictures, which both must reach, and `AJ_…` the settings of the jobs.
    """
    app = Flask(__name__)
    app.config.from_mapping(
        PICTURES=str(Path(app.instance_path) / "pictures"),
        MAX_CONTENT_LENGTH=10 * 2**20,
        AJ_TASKS="thumbnails.tasks",
        AJ_WEB_THREADS=32,  # as many as gunicorn is started with: half of them may hold requests that wait
    )
    app.config.from_prefixed_env("THUMBNAILS")
    app.config.from_prefixed_env("AJ")
    app.register_blueprint(views.pages)
    app.register_error_handler(404, views.not_found)
    app.register_error_handler(413, views.too_large)
    app.register_blueprint(JobsBlueprint(), url_prefix="/api")
    return app
