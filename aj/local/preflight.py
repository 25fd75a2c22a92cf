"""What can be found wrong before anything is started, so that one line tells it instead of the end of a part.

`python -m aj.local.preflight` is the half that loads the tasks: modules of somebody else, which may start threads
or print, and so are imported in a process of their own.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from aj.errors import SettingsError
from aj.processes import die_at_interrupt
from aj.settings import Settings

HOOK_LOG = "hook.log"


def refuse_busy(addresses: Sequence[tuple[str, int, str]]) -> None:
    """Looks whether every `(host, port, setting)` is free to listen on.

    Raises: SettingsError: one is not; the message names it and the setting that moves it.
    """
    with contextlib.ExitStack() as stack:
        for host, port, setting in addresses:
            try:
                listener = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((host, port))
                listener.listen(1)
            except OSError as error:
                trouble = f"cannot listen on {host} port {port} ({error.strerror}); "
                if isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    mend = "AJ_HOST must be an address of this machine"
                elif error.errno == errno.EADDRINUSE:
                    mend = f"end what listens there, or set {setting} to another port"
                else:
                    mend = f"set {setting} to another port"
                raise SettingsError(trouble + mend) from None


def receipts_log(environ: Mapping[str, str]) -> Path:
    """The receiver's log as an absolute path: `HOOKSINK_LOG`, else `hook.log` in the working folder."""
    return Path(environ.get("HOOKSINK_LOG") or HOOK_LOG).absolute()


def trouble_with_log(path: Path) -> str | None:
    """Why no receipts can be written to `path`; None where they can, and it is there then."""
    try:
        # Without O_NONBLOCK, opening a pipe would hang; for a regular file it means nothing.
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        return error.strerror
    try:
        return None if stat.S_ISREG(os.fstat(fd).st_mode) else "it is not a regular file"
    finally:
        os.close(fd)


def refuse_bad_log(path: Path) -> None:
    """Raises: SettingsError: no receipts can be written to `path`."""
    trouble = trouble_with_log(path)
    if trouble:
        raise SettingsError(f"HOOKSINK_LOG is {str(path)!r}; accepted: a file that can be written ({trouble})")


def look_ahead(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Loads the tasks and asks a store that was named, in a process of its own; gives what an operator should know.

    Raises: SettingsError: the tasks cannot be loaded, or the store would lose jobs.
    """
    command = [sys.executable, "-m", "aj.local.preflight"]
    looked = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=False)
    said = looked.stdout.splitlines()
    if looked.returncode == 2 and said:
        raise SettingsError(said[0])
    if looked.returncode != 0:
        raise SettingsError(f"AJ_TASKS is {','.join(settings.tasks)!r}, which cannot be imported; see above")
    return said


def shown_url(url: str) -> str:
    """A store's address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def main() -> int:
    """Prints remarks, or the reason for exit code 2. An exception of a task's module is shown as it is."""
    from aj.worker.surroundings import load_tasks  # noqa: PLC0415 (heavy, and for this process alone)

    logging.disable()
    settings = Settings.from_env(os.environ)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            load_tasks(settings)
        if settings.redis_url is not None:
            _ask_store(settings.redis_url, settings)
    except SettingsError as error:
        print(error)
        return 2
    return 0


def _ask_store(url: str, settings: Settings) -> None:
    from aj.store import Keys, connect, refuse_unfit, unready_because  # noqa: PLC0415 (heavy as well)

    client = connect(url)
    refuse_unfit(client)
    trouble = unready_because(client, Keys(settings.prefix), settings.queues).get("store")
    if trouble:
        print(f"the store at {shown_url(url)} {trouble}; meanwhile requests get 503")


if __name__ == "__main__":
    die_at_interrupt()
    sys.exit(main())
