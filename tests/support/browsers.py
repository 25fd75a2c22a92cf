"""Where a Chromium is, and how to get one. Starts none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
NO_BROWSER = "no Chromium is here"
HOW_TO_GET_ONE = (
    "apt-get install chromium (Debian, Ubuntu), brew install --cask chromium (macOS), or CHROMIUM=path of another one"
)


def browser_path(environ: Mapping[str, str] = os.environ) -> str | None:
    """What CHROMIUM names, else the first on the PATH; None where there is none."""
    named = environ.get("CHROMIUM")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    return found or (MAC if not named and os.access(MAC, os.X_OK) else None)
