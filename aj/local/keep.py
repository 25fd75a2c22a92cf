"""The keeper of the embedded store: `python -m aj.local.keep FOLDER LOCK_FD [BINARY]`. Started by `embedded` only.

It runs the server as its child, starts it again where it dies, and ends it once nobody has used it for a second.
It is its own process, since every user may be killed at any moment, the one that started the store included.
It never decides by a count of its own: the locks say who is there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from aj import clock
from aj.errors import SettingsError
from aj.local.embedded import START, USERS
from aj.local.locks import Lock, has_owner, is_in_use, try_lock
from aj.local.server import SERVER_LOCK, ask, socket_of, start_server
from aj.local.signals import Signals

LOOK_S, SOON_S, GRACE_S = 0.25, 0.02, 1.0
CRASHES_MOST, CRASH_S = 5, 5.0


class Keeper:
    """One server and its life. `folder` is the data folder, `binary` a server program that was asked for."""

    def __init__(self, folder: Path, binary: Path | None) -> None:
        self._folder = folder
        self._binary = binary
        self._crashes = 0
        self._at_start = os.stat(folder)
        self._start()

    def _start(self) -> None:
        if has_owner(self._folder / SERVER_LOCK):
            # Its keeper was killed. A server that is not our child cannot be watched, so it makes room for ours.
            ask(self._folder, b"SHUTDOWN")
        self._server = start_server(self._folder, self._binary)
        self._started_s = clock.monotonic_s()

    def watch(self, signals: Signals) -> None:
        """Returns once the server has been stopped, nobody having used it for a second.

        Asked by SIGTERM to leave, it leaves without that second, but never while the store is in use.

        Raises: SettingsError: the server died again and again, or cannot be started again.
        """
        grace_s, alone_since_s = GRACE_S, clock.monotonic_s()
        look_s = LOOK_S
        while True:
            if {signal.SIGTERM, signal.SIGINT} & set(signals.wait(look_s)):
                grace_s = 0.0
            if self._is_deleted():
                # There is nothing to save, and the socket's name may be another server's by now.
                self._server.kill()
                return
            if not self._server.is_alive():
                self._start_again()
            # Not waited for: the process that holds it may be waiting for our server.
            held = try_lock(self._folder / START)
            look_s = LOOK_S if held else SOON_S
            if held is None:
                continue
            with held:
                now_s = clock.monotonic_s()
                if is_in_use(self._folder / USERS):
                    alone_since_s = now_s
                elif now_s - alone_since_s >= grace_s:
                    self._stop()
                    return

    def _start_again(self) -> None:
        is_crash = clock.monotonic_s() - self._started_s < CRASH_S
        self._crashes = self._crashes + 1 if is_crash else 1
        if self._crashes > CRASHES_MOST:
            raise SettingsError(f"the server in {self._folder} ended {self._crashes} times in a row")
        print("keeper: the server ended by itself; it is started again", file=sys.stderr, flush=True)
        self._start()

    def _is_deleted(self) -> bool:
        try:
            return not os.path.samestat(self._at_start, os.stat(self._folder))
        except FileNotFoundError:
            return True

    def _stop(self) -> None:
        self._server.stop()
        place = socket_of(self._folder).parent
        if place != self._folder:
            place.rmdir()


def main(argv: list[str]) -> int:
    folder, held = Path(argv[0]), Lock(int(argv[1]))
    binary = Path(argv[2]) if len(argv) > 2 else None
    if os.fork():
        os._exit(0)  # the keeper must be no child of a user: some servers reap, and judge, every child they have
    held.note(os.getpid())
    with Signals(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD) as signals:
        try:
            keeper = Keeper(folder, binary)
        except SettingsError as error:
            _report(str(error))
            return 1
        _report("ready")
        try:
            keeper.watch(signals)
        except SettingsError as error:
            print(f"keeper: {error}", file=sys.stderr, flush=True)
            return 1
    return 0


def _report(word: str) -> None:
    """Tells the process that started us, which may be dead by now, and closes the line to it."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{word}\n".encode())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
