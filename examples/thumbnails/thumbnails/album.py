"""Pictures in a folder, and the thumbnails made of them. Knows Pillow and files, neither Flask nor jobs.

A picture is named by a UUID that is made here, so that no text of a visitor ever becomes part of a path.
"""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import UUID, uuid4

from PIL import Image, ImageOps

FORMATS = ("JPEG", "PNG", "WEBP")
MOST_PIXELS = 50_000_000  # some 200 MB once decoded, however small the file is
# What Pillow raises for a file that is not what it seems to be.
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, Image.DecompressionBombError)


class NotAPicture(Exception):
    """Something is no picture, or none that can be used; the text says why, and may be shown to anybody."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A thumbnail that was made: the longest side that was asked for, and what it has become, in pixels."""

    size: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Album:
    """The pictures of one folder."""

    folder: Path

    def add(self, upload: IO[bytes]) -> UUID:
        """Keeps an uploaded picture. Only its head is read: to decode all of it is slow, and so the task's work.

        Raises: NotAPicture: it is of no known format, or has too many pixels.
        """
        try:
            with Image.open(upload, formats=FORMATS) as head:
                pixels = head.width * head.height
        except UNREADABLE:
            raise NotAPicture(f"This is no picture of a known format: {', '.join(FORMATS)}.") from None
        if pixels > MOST_PIXELS:
            raise NotAPicture(f"The picture has {pixels:,} pixels; the limit is {MOST_PIXELS:,}.")
        picture = uuid4()
        upload.seek(0)
        with self._new_file(str(picture)) as path, path.open("wb") as kept:
            shutil.copyfileobj(upload, kept)
        return picture

    def shrink(self, picture: UUID, sizes: Sequence[int]) -> Iterator[Thumbnail]:
        """Makes thumbnails, the largest first, and gives each as soon as it is there. None is larger than the picture.

        Raises: NotAPicture: it is not there, or damaged.
        """
        largest_first = sorted(set(sizes), reverse=True)
        image = self._decoded(picture, largest_first[0])
        for size in largest_first:
            image.thumbnail((size, size))
            with self._new_file(thumbnail_name(picture, size)) as path:
                image.save(path, "WEBP")
            yield Thumbnail(size, image.width, image.height)

    def _decoded(self, picture: UUID, size: int) -> Image.Image:
        """The picture, upright, in no more detail than is needed for `size`."""
        try:
            with Image.open(self.folder / str(picture), formats=FORMATS) as image:
                image.draft("RGB", (size, size))
                upright = ImageOps.exif_transpose(image)
                return upright.convert("RGBA" if upright.has_transparency_data else "RGB")
        except FileNotFoundError:
            raise NotAPicture("There is no such picture.") from None
        except UNREADABLE:
            raise NotAPicture("The picture is damaged.") from None

    @contextmanager
    def _new_file(self, name: str) -> Iterator[Path]:
        """A path to write to. The file gets its name when it is whole, so that nobody is ever served a half."""
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f".{name}.{uuid4()}"
        try:
            yield unfinished
            os.replace(unfinished, self.folder / name)
        finally:
            unfinished.unlink(missing_ok=True)


def thumbnail_name(picture: UUID, size: int) -> str:
    """The file of a thumbnail, in the folder of its album."""
    return f"{picture}.{size}.webp"
