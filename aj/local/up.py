"""`./run up`: the API, a worker, the receiver and their store, until somebody asks them to stop.

Data stay in the data folder from one run to the next. Nothing is restarted silently: where one part ends by itself,
all of it ends, with exit code 1.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aj.local.embedded import ensure_store, folder_of, is_kept, leave_store
from aj.local.parts import (
    LOOPBACK,
    are_listening,
    reachable,
    start_parts,
    stop_in_order,
)
from aj.local.supervise import Ended, Group, Stopped, mute, refuse_busy
from aj.settings import Settings

NAME_WIDTH = 8


def up(environ: Mapping[str, str]) -> int:
    """Runs everything; gives the exit code: 0 after an orderly stop, 1 where a part failed or was killed.

    Raises: SettingsError: a setting is wrong, a port is busy, or the store does not start.
    """
    settings = Settings.from_env(environ)
    refuse_busy([(settings.host, settings.port, "AJ_PORT"), (LOOPBACK, settings.hooksink_port, "AJ_HOOKSINK_PORT")])
    children_environ = _for_children(settings, environ)
    with Group(_show) as group:
        code = _run(group, settings, children_environ)
        try:
            stop_in_order(group)
        except Stopped:
            _show("up", "killing what still runs")
            code = 1
        group.kill()
        leave_store(folder_of(settings))
    _show("up", "stopped")
    return code


def _run(group: Group, settings: Settings, environ: Mapping[str, str]) -> int:
    """Starts all, and returns the exit code once it is time to stop."""
    try:
        start_parts(group, settings, environ)
        stored = ensure_store(settings, environ)
        if not are_listening(group, settings):
            _show("up", "the API and the receiver do not accept connections; stopping")
            return 1
        for line in _where(stored, settings, environ):
            _show("up", line)
        folder = folder_of(settings)
        group.watch(lambda: settings.redis_url is None and not is_kept(folder))
    except Stopped:
        _show("up", "stopping; a running job comes to its end first, a second Ctrl-C kills it")
        return 0
    except Ended as ended:
        _show("up", f"{ended}; stopping the rest")
        return 1
    _show("up", f"the store ended by itself; stopping the rest; {folder}/store.log may say why")
    return 1


def _for_children(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Each child finds the store itself, so that the store stays while any of them lives."""
    moved = {"AJ_PORT": str(settings.port), "AJ_HOST": settings.host}  # a PORT in the environment is not meant for us
    if "AJ_HOOKSINK_PORT" in environ and "AJ_CALLBACK_ALLOW" not in environ:
        moved["AJ_CALLBACK_ALLOW"] = f"{LOOPBACK}:{settings.hooksink_port}"
    return {**environ, **moved}


def _where(stored: Settings, settings: Settings, environ: Mapping[str, str]) -> list[str]:
    api = f"http://{_bracketed(reachable(settings.host))}:{settings.port}"
    receiver = f"http://{LOOPBACK}:{settings.hooksink_port}"
    body = f'{{"n": 5, "callback_url": "{receiver}/"}}'
    assert stored.redis_url is not None
    if settings.redis_url is None:
        store = f"in {folder_of(settings)}, kept from run to run"
        url = shlex.quote(stored.redis_url)
    else:
        store = f"{urlsplit(stored.redis_url).scheme}://, as AJ_REDIS_URL or REDIS_URL says"
        url = '"$AJ_REDIS_URL"' if "AJ_REDIS_URL" in environ else '"$REDIS_URL"'
    rq = Path(sys.executable).with_name("rq")
    rq_shown = os.path.relpath(rq) if rq.is_relative_to(Path.cwd()) else str(rq)
    return [
        "everything runs; Ctrl-C stops it",
        f"  API        {api}/jobs",
        f"  receiver   {receiver}, receipts in {os.path.abspath(environ.get('HOOKSINK_LOG') or 'hook.log')}",
        f"  store      {store}",
        f"  try        curl -i {api}/jobs -H 'Content-Type: application/json' -d '{body}'",
        f"  queues     {shlex.quote(rq_shown) if rq.exists() else 'rq'} info -u {url}",
    ]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _show(name: str, line: str) -> None:
    try:
        print(f"{name:<{NAME_WIDTH}} | {line}", flush=True)
    except OSError:
        mute()
        signal.raise_signal(signal.SIGTERM)  # a wish to stop, not a reason to crash
