"""The store that starts by itself where no `AJ_REDIS_URL` is set, and ends with its last user.

Web processes, workers and `./run up` may start first, in any order, and each may die at any line. So nobody
counts: the operating system does, by locks in the data folder that end with the process that holds them.

    users.lock    shared by every process that uses the store, for its whole life, forked children included
    start.lock    held while one process starts the store, or looks whether it may stop it
    keeper.lock   held by the store's keeper for its life; taken before the keeper exists, and inherited by it
    server.lock   held by the server itself: whatever else fails, one folder never has two servers

A process takes its share of users.lock only under start.lock, and the keeper stops the server only under
start.lock with nobody sharing users.lock: so no store is stopped under a process that has just found it.
Whether anyone shares users.lock is asked under start.lock only, since two who ask at once would see each other.
This file holds the users' side; `keep` is the keeper, `server` the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aj import clock
from aj.errors import SettingsError
from aj.local.locks import Lock, has_owner, is_in_use, lock, share_lock, try_lock
from aj.local.server import LOG, ServerProcess, ask, make_private, start_server, url_of
from aj.local.waiting import pause, wait_for
from aj.settings import Settings

__all__ = [
    "ServerProcess",
    "ensure_store",
    "folder_of",
    "is_kept",
    "leave_store",
    "refuse_where_wrong",
    "revive_store",
    "start_server",
    "uses_store",
]

START_S, LEAVE_S = 60.0, 20.0
DYING_S = 1.0  # a process that was killed a moment ago may still look like a user
USERS, START, KEEPER = "users.lock", "start.lock", "keeper.lock"
PLATFORMS = {
    "DYNO": "Heroku",
    "FLY_APP_NAME": "Fly.io",
    "K_SERVICE": "Cloud Run or Knative",
    "KUBERNETES_SERVICE_HOST": "Kubernetes",
    "RAILWAY_ENVIRONMENT": "Railway",
    "RENDER": "Render",
}

# The shares of users.lock that this process holds, by folder. A share must last as long as the process:
# were its descriptor closed by the garbage collector, the store would stop under a running worker.
_SHARES: dict[Path, Lock] = {}


def ensure_store(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """`settings` with a `redis_url`: the one they have, else that of the embedded store, which answers by then.

    From here on this process uses the store: it stays until the process, and its forked children, have ended.

    Raises: SettingsError: an embedded store is not wanted or not sensible here, or it does not start.
    """
    if settings.redis_url is not None:
        return settings
    refuse_where_wrong(settings, environ)
    folder = folder_of(settings)
    make_private(folder, "AJ_DATA_DIR")
    try:
        held = lock(folder / START, START_S)
    except TimeoutError:
        raise SettingsError(f"another process has been starting the store in {folder} for {START_S:.0f} s") from None
    with held:
        share = _share_of(folder)
        try:
            _until_it_answers(folder, settings.redis_server, environ)
        except BaseException:
            if share is not _SHARES.get(folder):
                share.release()
            raise
        _SHARES[folder] = share
    return replace(settings, redis_url=url_of(folder))


def _share_of(folder: Path) -> Lock:
    """This process's share, or a new one where it has none, or one of a folder that was deleted since."""
    share = _SHARES.get(folder)
    return share if share and share.is_of(folder / USERS) else share_lock(folder / USERS)


def uses_store(settings: Settings) -> bool:
    """Whether this process, or the one that forked it, uses the embedded store that `settings` name."""
    return settings.redis_url is None and folder_of(settings) in _SHARES


def revive_store(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Starts the store again where this process uses it and its keeper has ended; whether that was so.

    A keeper ends under its users where it is killed, where its server crashes again and again, and where somebody
    deletes the folder. Looking costs three system calls. Not for a process that forks while another thread is here.

    Raises: SettingsError: it does not start.
    """
    if not uses_store(settings) or is_kept(folder_of(settings)):
        return False
    ensure_store(settings, environ)
    return True


def folder_of(settings: Settings) -> Path:
    """The data folder as an absolute path, so that all processes mean the same one."""
    return Path(settings.data_dir).resolve()


def is_kept(folder: Path) -> bool:
    """Whether the store of `folder` has a keeper, and so either answers or is being started again."""
    return has_owner(folder / KEEPER)


def leave_store(folder: Path) -> None:
    """Gives up this process's use of the store, and waits for its end where nobody else uses it.

    For a process that goes on; otherwise ending is enough. Does nothing where the folder has been deleted.
    """
    share = _SHARES.pop(folder, None)
    if share is None or not (folder / START).exists():
        return
    share.release()
    with lock(folder / START, START_S):  # under it the keeper cannot leave, so that the pid is the keeper's
        pid = (folder / KEEPER).read_text(encoding="ascii").strip()
        if is_kept(folder) and pid:
            os.kill(int(pid), signal.SIGTERM)
    if not wait_for(lambda: not is_kept(folder), DYING_S):
        wait_for(lambda: not is_kept(folder) or _is_used(folder), LEAVE_S, 0.05)


def _is_used(folder: Path) -> bool:
    held = try_lock(folder / START)
    if held is None:
        return False
    with held:
        return is_in_use(folder / USERS)


def refuse_where_wrong(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raises: SettingsError: an embedded store is not wanted, or would do harm here."""
    if settings.embedded == "never":
        raise SettingsError("AJ_REDIS_URL is not set and AJ_EMBEDDED is 'never'; set AJ_REDIS_URL")
    platform = next((name for name in PLATFORMS if environ.get(name)), None)
    if settings.embedded == "auto" and platform:
        raise SettingsError(
            f"AJ_REDIS_URL is not set, and on {PLATFORMS[platform]} (seen by {platform}) web and worker would each "
            "get a store of their own; set AJ_REDIS_URL, or AJ_EMBEDDED=always if all runs in this one container"
        )


def _until_it_answers(folder: Path, binary: str | None, environ: Mapping[str, str]) -> None:
    """Called under start.lock. Gives the store a keeper where it has none, and waits for its PONG."""
    deadline_s = clock.monotonic_s() + START_S
    while clock.monotonic_s() < deadline_s:
        keeper = try_lock(folder / KEEPER)
        if keeper is not None:
            with keeper:
                _start_keeper(folder, keeper, binary, environ)
        reply = ask(folder, b"PING")
        if reply.startswith(b"+PONG") and is_kept(folder):
            return
        if reply.startswith(b"-LOADING"):
            deadline_s = clock.monotonic_s() + START_S
        pause(0.005)
    raise SettingsError(f"the store in {folder} has not answered for {START_S:.0f} s; see {folder / LOG}")


def _start_keeper(folder: Path, held: Lock, binary: str | None, environ: Mapping[str, str]) -> None:
    """Starts a keeper, which inherits the lock `held`, and waits for its one word: ready, or why not."""
    os.ftruncate(held.fd, 0)  # the last keeper's pid must not be taken for this one's
    package_root = Path(__file__).resolve().parents[2]
    inherited = {name: value for name, value in environ.items() if not name.startswith("AJ_")}
    program = [str(Path(binary).absolute())] if binary else []
    known = [part for part in (str(package_root), environ.get("PYTHONPATH")) if part]
    with (folder / LOG).open("ab") as log:
        said = subprocess.run(
            [sys.executable, "-P", "-m", "aj.local.keep", str(folder), str(held.fd), *program],
            cwd=folder,
            env={**inherited, "PYTHONPATH": os.pathsep.join(known)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # a terminal's Ctrl-C is for the users, not for the keeper
            pass_fds=(held.fd,),
            check=False,
        ).stdout.decode("utf-8", "replace")
    if said.strip() != "ready":
        raise SettingsError(said.strip() or f"the keeper of the store did not start; see {folder / LOG}")
