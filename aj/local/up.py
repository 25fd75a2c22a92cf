"""`./run up`: the API, a worker, the receiver and their store, until somebody asks them to stop.

Data stay in the data folder from one run to the next. No part is restarted silently: where one ends by itself, all of
them end, with exit code 1. Only the store is, by its keeper, and the keeper by those who use the store.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from aj.errors import SettingsError
from aj.local.embedded import ensure_store, folder_of, is_kept, leave_store, refuse_where_wrong, revive_store
from aj.local.locks import has_owner, try_lock
from aj.local.output import Unheard, say
from aj.local.parts import (
    LOOPBACK,
    are_listening,
    reachable,
    start_parts,
    stop_in_order,
)
from aj.local.preflight import look_ahead, receipts_log, refuse_bad_log, refuse_busy, shown_url
from aj.local.server import make_private
from aj.local.supervise import Ended, Group, Stopped
from aj.settings import Settings

NAME_WIDTH = 8
UP_LOCK = "up.lock"  # held by the one `up` of a data folder, for its life


def up(environ: Mapping[str, str]) -> int:
    """Runs everything; gives the exit code: 0 after an orderly stop, 1 where a part failed or was killed.

    Raises: SettingsError: a setting is wrong, a port is busy, another `up` runs here, or the store does not start.
    """
    settings = Settings.from_env(environ)
    folder = folder_of(settings)
    children_environ = _for_children(settings, environ)
    _refuse_second(settings, folder)
    refuse_busy([(settings.host, settings.port, "AJ_PORT"), (LOOPBACK, settings.hooksink_port, "AJ_HOOKSINK_PORT")])
    remarks = look_ahead(settings, environ)
    refuse_bad_log(receipts_log(environ))
    with _alone(settings, environ), Group(_show) as group:
        for line in remarks:
            _show("up", line)
        code = _run(group, settings, children_environ)
        try:
            stop_in_order(group)
        except Stopped:
            _show("up", "killing what still runs")
            code = 1
        group.kill()
        leave_store(folder)
        _show("up", "stopped")
    return code


def _refuse_second(settings: Settings, folder: Path) -> None:
    if settings.redis_url is None and has_owner(folder / UP_LOCK):
        process = (folder / UP_LOCK).read_text(encoding="ascii").strip()
        raise SettingsError(
            f"another ./run up, process {process}, uses {folder}; end it, or give this one an AJ_DATA_DIR, an AJ_PORT "
            "and an AJ_HOOKSINK_PORT of its own"
        )


@contextlib.contextmanager
def _alone(settings: Settings, environ: Mapping[str, str]) -> Iterator[None]:
    """Keeps other `up`s away from the data folder. With a store that was named there is none, and the ports do."""
    if settings.redis_url is not None:
        yield
        return
    refuse_where_wrong(settings, environ)
    folder = folder_of(settings)
    make_private(folder, "AJ_DATA_DIR")
    held = try_lock(folder / UP_LOCK)
    if held is None:
        _refuse_second(settings, folder)
        raise SettingsError(f"another ./run up has just used {folder}; try again")
    with held:
        held.note(os.getpid())
        yield


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
        _stay(group, settings, environ)
    except Stopped:
        _show("up", "stopping; a running job comes to its end first, a second Ctrl-C kills it")
        return 0
    except Ended as ended:
        _show("up", f"{ended}; stopping the rest")
    except SettingsError as error:
        _show("up", f"the store has ended: {error}; stopping the rest, a second Ctrl-C kills it")
    return 1


def _stay(group: Group, settings: Settings, environ: Mapping[str, str]) -> None:
    """Passes on what is printed and keeps the store alive. Raises: Stopped, Ended, SettingsError."""
    folder = folder_of(settings)
    while True:
        group.watch(lambda: settings.redis_url is None and not is_kept(folder))
        if revive_store(settings, environ):
            _show("up", f"the store ended by itself; it runs again; {folder}/store.log may say why")


def _for_children(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Each child finds the store itself, so that the store stays while any of them lives."""
    moved = {"AJ_PORT": str(settings.port), "AJ_HOST": settings.host}  # a PORT in the environment is not meant for us
    if "AJ_DASHBOARD" not in environ:
        moved["AJ_DASHBOARD"] = "act"
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
    else:
        store = f"{shown_url(stored.redis_url)}, as AJ_REDIS_URL or REDIS_URL says"
    lines = [
        "everything runs; Ctrl-C stops it",
        f"  API        {api}/jobs",
        *([] if settings.dashboard == "off" else [f"  dashboard  {api}/dashboard"]),
        f"  receiver   {receiver}, receipts in {receipts_log(environ)}",
        f"  store      {store}",
        f"  try        curl -i {api}/jobs -H 'Content-Type: application/json' -d '{body}'",
    ]
    if "+sentinel" in stored.redis_url:  # rq asks a server, and cannot ask Sentinels for it
        return lines
    return [*lines, f"  queues     {_rq_info(stored.redis_url, environ)}"]


def _rq_info(url: str, environ: Mapping[str, str]) -> str:
    """A command line that works in any folder; an address with a password in it is not shown."""
    rq = Path(sys.executable).with_name("rq")
    program = shlex.quote(str(rq)) if rq.exists() else "rq"
    if url == shown_url(url):
        return f"{program} info -u {shlex.quote(url)}"
    return f'{program} info -u "{"$AJ_REDIS_URL" if environ.get("AJ_REDIS_URL") else "$REDIS_URL"}"'


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _show(name: str, line: str) -> None:
    try:
        say(f"{name:<{NAME_WIDTH}} | {line}")
    except Unheard:
        signal.raise_signal(signal.SIGTERM)  # a wish to stop, not a reason to crash
