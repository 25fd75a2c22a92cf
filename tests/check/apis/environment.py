"""The environment of the other APIs: `tests/check/apis/.venv`, made at the first call from `requirements.txt` there.

It is made anew when that file or the Python has changed, by one process at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER, REQUIREMENTS = HERE / ".venv", HERE / "requirements.txt"
TIMEOUT_S = 300


class EnvironmentMissing(Exception):
    """It is not there and cannot be made; the text says what to do."""


def is_in_ci() -> bool:
    """Where tests are not skipped for want of a network."""
    return os.environ.get("CI", "").lower() in ("true", "1")


def folder_of_programs() -> Path:
    """Where `python`, `celery` and `pygeoapi` are. Raises: EnvironmentMissing."""
    state = FOLDER / "state"
    wanted = f"{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()} {sys.version}"
    with (HERE / ".venv.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not state.exists() or state.read_text("utf-8") != wanted:
            _make()
            state.write_text(wanted, "utf-8")  # the last step: an install that was cut short is done again
    return FOLDER / "bin"


def _make() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    base, python, uv = getattr(sys, "_base_executable", "") or sys.executable, FOLDER / "bin/python", shutil.which("uv")
    how = ["--quiet", "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)]
    if uv:
        steps = [[uv, "venv", "--quiet", "--python", base, str(FOLDER)]]
        steps += [[uv, "pip", "install", "--python", str(python), *how]]
    else:
        pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
        steps = [[base, "-m", "venv", str(FOLDER)], [*pip, *how]]
    for command in steps:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            said = done.stderr.strip()[-300:]
            by_hand = f"{base} -m venv {FOLDER} && {FOLDER}/bin/pip install {' '.join(how[1:])}"
            raise EnvironmentMissing(f"{FOLDER} with Celery and pygeoapi cannot be made ({said}); try {by_hand}")
