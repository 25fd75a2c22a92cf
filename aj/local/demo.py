"""`./run demo`: one job from its submission to its webhook, over real HTTP between real processes.

Its store is fresh and temporary, so that it never touches the data of `./run up`; only `hook.log` stays.
What it prints was received, not made up; where an answer is not what the contract says, it says so and fails.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from aj import clock
from aj.errors import AjError
from aj.local.children import wait_for
from aj.local.embedded import ensure_store, folder_of, leave_store
from aj.local.exchange import Answer, Speaker, show
from aj.local.parts import LOOPBACK, are_listening, start_api_and_worker, start_receiver, stop_in_order
from aj.local.supervise import Ended, Group, Stopped, refuse_busy
from aj.settings import Settings
from aj.signature import SECRET_PREFIX

JOB_S, WEBHOOK_S = 60.0, 30.0
HOOK_LOG = Path("hook.log")
KEPT = ("AJ_PORT", "AJ_HOOKSINK_PORT", "AJ_REDIS_SERVER")
LOG_LINES = 15


class Broken(AjError):
    """An answer is not what the contract says."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the steps of the demonstration share."""

    group: Group
    speaker: Speaker
    callback_url: str


def demo(environ: Mapping[str, str]) -> int:
    """Runs the demonstration; gives the exit code: 0, 1 where something failed, 130 where it was interrupted.

    Raises: SettingsError: a setting is wrong, a port is busy, or the store does not start.
    """
    asked = Settings.from_env(environ)
    refuse_busy([(LOOPBACK, asked.port, "AJ_PORT"), (LOOPBACK, asked.hooksink_port, "AJ_HOOKSINK_PORT")])
    printed: list[str] = []
    with _temporary_folder() as folder, Group(lambda name, line: printed.append(f"{name}: {line}")) as group:
        own = _environment(environ, asked, folder)
        settings = Settings.from_env(own)
        try:
            code = _play(group, settings, own)
        except (Ended, Broken, OSError, ValueError, http.client.HTTPException) as error:
            print(f"FAILED: {error}\n\nThe last lines of the processes:", *printed[-LOG_LINES:], sep="\n", flush=True)
            code = 1
        except Stopped:
            print("\nInterrupted; stopping.", flush=True)
            code = 130
        with contextlib.suppress(Stopped):
            stop_in_order(group)
        group.kill()
        leave_store(folder_of(settings))
    if code == 0:
        show("Everything is stopped. ./run up starts the same, to stay.")
    return code


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="aj-demo-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _environment(environ: Mapping[str, str], asked: Settings, folder: Path) -> dict[str, str]:
    """The environment without what would make this another deployment than the one that is shown."""
    foreign = {"REDIS_URL", "PORT", "GUNICORN_CMD_ARGS", "HOOKSINK_LOG"}
    kept = {
        name: value
        for name, value in environ.items()
        if name in KEPT or not (name.startswith("AJ_") or name in foreign)
    }
    secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode("ascii")
    return {
        **kept,
        "AJ_DATA_DIR": str(folder),
        "AJ_EMBEDDED": "always",
        "AJ_PORT": str(asked.port),
        "AJ_WEB_WORKERS": "1",
        "AJ_CALLBACK_ALLOW": f"{LOOPBACK}:{asked.hooksink_port}",
        "AJ_WEBHOOK_SECRETS": secret,
        "HOOKSINK_LOG": str(HOOK_LOG.absolute()),
    }
