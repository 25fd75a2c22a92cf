"""The slow work of the application. A worker runs it inside the context of the app: see `AJ_TASK_APP`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated
from uuid import UUID

from flask import current_app
from pydantic import Field

from aj import TaskError, report_progress, task
from thumbnails.album import Album, NotAPicture

Size = Annotated[int, Field(ge=16, le=2048)]
Sizes = Annotated[list[Size], Field(min_length=1, max_length=8)]


@task(timeout_s=60)
def make_thumbnails(picture: UUID, sizes: Sizes) -> list[dict[str, int]]:
    """Makes a thumbnail of the picture for each size, which is its longest side in pixels."""
    album = Album(Path(current_app.config["PICTURES"]))
    made: list[dict[str, int]] = []
    try:
        for thumbnail in album.shrink(picture, sizes):
            made.append(asdict(thumbnail))
            report_progress(len(made) / len(set(sizes)), f"{thumbnail.size} px")
    except NotAPicture as refusal:
        raise TaskError(str(refusal)) from None  # whoever submitted the job reads this text
    return made
