"""The second environment: `bench/.venv`, which has Celery, so that nothing of it is in the project's own.

Made from `bench/requirements.txt` at the first run, and anew when that file or the Python has changed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.processes import ROOT, BenchError

FOLDER = ROOT / "bench/.venv"
REQUIREMENTS = ROOT / "bench/requirements.txt"


def celery_python(say: Callable[[str], None]) -> str:
    """The Python that has Celery. Raises: BenchError: it cannot be made."""
    python, state = FOLDER / "bin/python", FOLDER / "state"
    wanted = f"{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()} {sys.version}"
    if state.exists() and state.read_text("utf-8") == wanted:
        return str(python)
    say("making bench/.venv for Celery; this does not count as time of the bench")
    shutil.rmtree(FOLDER, ignore_errors=True)
    for command in _steps(getattr(sys, "_base_executable", "") or sys.executable, python):
        if subprocess.run(command, check=False).returncode:
            raise BenchError(f"bench/.venv cannot be made ({' '.join(command[:4])} …); --stacks aj,rq does without it")
    state.write_text(wanted, "utf-8")  # the last step: an install that was cut short is done again
    return str(python)


def _steps(base: str, python: Path) -> list[list[str]]:
    uv = shutil.which("uv")
    if uv:
        return [
            [uv, "venv", "--quiet", "--python", base, str(FOLDER)],
            [uv, "pip", "sync", "--quiet", "--require-hashes", "--python", str(python), str(REQUIREMENTS)],
        ]
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"]
    return [[base, "-m", "venv", str(FOLDER)], [str(python), *install, str(REQUIREMENTS)]]
