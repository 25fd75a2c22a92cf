"""The embedded store with real users: who starts it, who keeps it, what ends it, and what no death can break."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from aj.local.embedded import KEEPER, USERS, is_kept
from aj.local.locks import has_owner, is_in_use
from aj.local.server import SERVER_LOCK, ask, socket_of, start_server, url_of
from tests.support.processes import clean_env
from tests.support.waiting import wait_until

USER = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job, which the tests may be, ignores it
from aj.local.embedded import ensure_store
from aj.local.watch import watch_store
from aj.settings import Settings
settings = Settings.from_env(os.environ)
print(ensure_store(settings, os.environ).redis_url, flush=True)
if "watch" in sys.argv:
    os.chdir("/")
    watch_store(settings, os.environ)
if "fork" in sys.argv:
    child = os.fork()
    if child:
        print(child, flush=True)
sys.stdin.read()
"""


class User:
    """A process that uses the store of `folder` until it is killed or told to leave."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, *arguments],
            env=clean_env({"AJ_DATA_DIR": str(folder)}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def said(self) -> str:
        """The next line that it prints; the first is the store's address."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return tmp_path / getattr(request, "param", "aj")


@pytest.fixture
def use(folder: Path) -> Iterator[Callable[..., User]]:
    """Starts users; at the end of the test nothing of them or of their store is left."""
    users: list[User] = []

    def start(*arguments: str) -> User:
        users.append(User(folder, *arguments))
        return users[-1]

    yield start
    for user in users:
        user.end()
    if is_kept(folder):
        os.kill(pid_in(folder / KEEPER), signal.SIGTERM)
    wait_until(lambda: is_gone(folder), what="the end of the store")


def pid_in(lock_file: Path) -> int:
    return int(lock_file.read_text(encoding="ascii"))


def pid_or_none(lock_file: Path) -> int | None:
    """As `pid_in`; None where the file has just been made or emptied."""
    try:
        return pid_in(lock_file)
    except (ValueError, FileNotFoundError):
        return None


def is_gone(folder: Path) -> bool:
    return not has_owner(folder / KEEPER) and not has_owner(folder / SERVER_LOCK)


def store_of(folder: Path) -> redis.Redis:
    return redis.Redis.from_url(url_of(folder), socket_timeout=5)


def test_those_who_start_at_once_get_one_server(folder: Path, use: Callable[..., User]) -> None:
    """Whichever comes first starts it; the others find it. None has to wait for a turn that never comes."""
    users = [use() for _ in range(4)]
    assert {user.said() for user in users} == {url_of(folder)}
    log = (folder / "store.log").read_text(encoding="utf-8")
    assert log.count("Ready to accept connections") == 1


def test_the_store_ends_with_its_last_user_and_keeps_the_data(folder: Path, use: Callable[..., User]) -> None:
    """SIGKILL frees a user's share like any other end. The next start finds what the last one wrote."""
    first, second = use(), use()
    first.said()
    second.said()
    store_of(folder).set("kept", "yes")
    server = pid_in(folder / SERVER_LOCK)
    first.kill()
    assert store_of(folder).get("kept") == b"yes"
    second.kill()
    wait_until(lambda: is_gone(folder), what="the end of the store")
    assert not socket_of(folder).exists()
    use().said()
    assert store_of(folder).get("kept") == b"yes"
    assert pid_in(folder / SERVER_LOCK) != server


def test_a_forked_child_of_a_killed_user_keeps_the_store(folder: Path, use: Callable[..., User]) -> None:
    """The workers of a web server finish their requests after their master was killed."""
    user = use("fork")
    user.said()
    child = int(user.said())
    user.kill()
    os.kill(pid_in(folder / KEEPER), signal.SIGTERM)  # makes the keeper look at once; it must not leave
    assert store_of(folder).ping()
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: is_gone(folder), what="the end of the store")


def test_a_server_that_is_killed_is_started_again(folder: Path, use: Callable[..., User]) -> None:
    """Its keeper sees it at once; what was written a second ago is on disk."""
    use().said()
    store_of(folder).set("kept", "yes")
    first = pid_in(folder / SERVER_LOCK)
    store_of(folder).waitaof(1, 0, 5000)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: pid_in(folder / SERVER_LOCK) != first, what="another server")
    wait_until(lambda: ask(folder, b"PING") == b"+PONG\r\n", what="its answer")
    assert store_of(folder).get("kept") == b"yes"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the next start ends the orphan, as the next test shows")
def test_a_killed_keeper_leaves_no_server_behind(folder: Path, use: Callable[..., User]) -> None:
    """The server ends in order, and the next start has keeper and server again, even at that very moment."""
    use().said()
    store_of(folder).set("kept", "yes")
    keeper = pid_in(folder / KEEPER)
    os.kill(keeper, signal.SIGKILL)
    use().said()
    assert store_of(folder).get("kept") == b"yes"
    assert pid_in(folder / KEEPER) != keeper
    assert has_owner(folder / KEEPER)


def test_a_user_that_watches_starts_the_store_again_after_its_keepers_death(
    folder: Path, use: Callable[..., User]
) -> None:
    """With its data, and although every user found the store running and none of them starts anew."""
    users = [use("watch"), use("watch"), use()]
    for user in users:
        user.said()
    store_of(folder).set("kept", "yes")
    keeper = pid_in(folder / KEEPER)
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: is_kept(folder) and pid_or_none(folder / KEEPER) not in (None, keeper), what="another keeper")
    wait_until(lambda: ask(folder, b"PING") == b"+PONG\r\n", what="its answer")
    assert store_of(folder).get("kept") == b"yes"


def test_a_user_that_watches_goes_on_after_the_keeper_gave_up(folder: Path, use: Callable[..., User]) -> None:
    """A keeper ends after several crashes in a row, or one at the start; the cause may pass."""
    use("watch").said()
    keeper = pid_in(folder / KEEPER)
    crashed: set[int] = set()

    def is_given_up() -> bool:
        server = pid_or_none(folder / SERVER_LOCK)
        if server is not None and server not in crashed and ask(folder, b"PING") == b"+PONG\r\n":
            crashed.add(server)
            os.kill(server, signal.SIGKILL)
        return pid_or_none(folder / KEEPER) not in (None, keeper)

    wait_until(is_given_up, within_s=30, what="another keeper")
    wait_until(lambda: ask(folder, b"PING") == b"+PONG\r\n", what="the answer of a server that is let live")


def test_a_user_that_watches_gets_an_empty_store_where_the_folder_was_deleted(
    folder: Path, use: Callable[..., User]
) -> None:
    """Who deletes the data while all runs gets what he asked for, and the new store is in use like the old one."""
    use("watch").said()
    store_of(folder).set("kept", "yes")
    folder.rename(folder.with_name("deleted"))
    wait_until(lambda: ask(folder, b"PING") == b"+PONG\r\n", what="another store")
    assert store_of(folder).get("kept") is None
    assert is_in_use(folder / USERS)


def test_a_server_without_a_keeper_makes_room_for_one_that_has(folder: Path, use: Callable[..., User]) -> None:
    """Its data are not lost, and one folder never has two servers."""
    with start_server(folder) as orphan:
        store_of(folder).set("kept", "yes")
        use().said()
        assert not orphan.is_alive()
        assert store_of(folder).get("kept") == b"yes"


def test_a_terminals_interrupt_is_for_the_user_alone(folder: Path, use: Callable[..., User]) -> None:
    """Ctrl-C goes to the whole foreground group; the store must outlive the worker that finishes its job."""
    first, second = use(), use()
    first.said()
    second.said()
    server = pid_in(folder / SERVER_LOCK)
    for user in (first, second):
        assert os.getsid(server) != user.process.pid
    os.killpg(first.process.pid, signal.SIGINT)
    first.process.wait(30)
    assert store_of(folder).ping()
    assert pid_in(folder / SERVER_LOCK) == server


def test_a_deleted_folder_ends_its_store(folder: Path, use: Callable[..., User]) -> None:
    """There is nothing left to serve; above all the old server must not remove a new one's socket."""
    use().said()
    deleted = folder.rename(folder.with_name("deleted"))
    wait_until(lambda: is_gone(deleted), what="the end of the store")
    assert (deleted / "store.sock").exists()
    use().said()
    assert store_of(folder).ping()


@pytest.mark.parametrize("folder", ["a long path " * 9 + "."], indirect=True)
def test_a_long_path_works_and_leaves_nothing_beside_it(folder: Path, use: Callable[..., User]) -> None:
    """The socket's own folder is made and removed with the server."""
    user = use()
    assert user.said() == url_of(folder)
    assert store_of(folder).ping()
    place = socket_of(folder).parent
    assert place.parent == Path("/tmp")
    assert place.stat().st_mode & 0o777 == 0o700
    user.kill()
    os.kill(pid_in(folder / KEEPER), signal.SIGTERM)
    wait_until(lambda: is_gone(folder), what="the end of the store")
    assert not place.exists()
