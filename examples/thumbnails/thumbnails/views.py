"""The pages of the application: a form, the upload, the thumbnails. The jobs have routes of their own, below `/api`."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from flask import Blueprint, Response, current_app, render_template, request, send_from_directory

from thumbnails.album import Album, NotAPicture, thumbnail_name

YEAR_S = 31_536_000

pages = Blueprint("pages", __name__)


@pages.get("/")
def index() -> Response:
    page = Response(render_template("index.html"))
    page.headers["Content-Security-Policy"] = "default-src 'self'; img-src 'self' data:"
    return page


@pages.post("/pictures")
def upload() -> tuple[dict[str, str], int]:
    """Keeps a picture and gives its name. What is made of it is a job: the browser submits that to `/api/jobs`."""
    try:
        return {"picture": str(_album().add(request.files["picture"].stream))}, 201
    except NotAPicture as refusal:
        return {"message": str(refusal)}, 415


@pages.get("/pictures/<uuid:picture>/<int:size>.webp")
def thumbnail(picture: UUID, size: int) -> Response:
    """A thumbnail never changes: another picture has another name."""
    return send_from_directory(_album().folder, thumbnail_name(picture, size), max_age=YEAR_S)


def not_found(error: Exception) -> tuple[str, int]:
    """The application's own page for what is not there. Below `/api` the API answers in its own form."""
    return render_template("404.html"), 404


def too_large(error: Exception) -> tuple[dict[str, str], int]:
    limit_mib = current_app.config["MAX_CONTENT_LENGTH"] // 2**20
    return {"message": f"The picture is larger than {limit_mib} MiB."}, 413


def _album() -> Album:
    return Album(Path(current_app.config["PICTURES"]))
