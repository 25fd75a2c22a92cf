"""Where an embedded store is wanted, and where it would do harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from aj.errors import SettingsError
from aj.local.embedded import PLATFORMS, ensure_store, folder_of, leave_store
from aj.settings import Settings


def test_a_store_that_is_named_is_left_alone(tmp_path: Path) -> None:
    """With AJ_REDIS_URL nothing is started and no folder is made, wherever this runs."""
    settings = Settings(redis_url="redis://127.0.0.1:1/0", data_dir=str(tmp_path / "aj"))
    assert ensure_store(settings, {"DYNO": "web.1"}) is settings
    assert not (tmp_path / "aj").exists()


def test_never_means_never(tmp_path: Path) -> None:
    """The refusal is one line that says what to set."""
    settings = Settings(embedded="never", data_dir=str(tmp_path / "aj"))
    with pytest.raises(SettingsError, match="AJ_EMBEDDED is 'never'; set AJ_REDIS_URL"):
        ensure_store(settings, {})
    assert not (tmp_path / "aj").exists()


@pytest.mark.parametrize("variable", PLATFORMS)
def test_a_hosting_platform_is_refused(tmp_path: Path, variable: str) -> None:
    """There web and worker run on different machines, and each would get a store of its own."""
    with pytest.raises(SettingsError, match=f"seen by {variable}.*AJ_REDIS_URL, or AJ_EMBEDDED=always"):
        ensure_store(Settings(data_dir=str(tmp_path / "aj")), {variable: "something"})
    assert not (tmp_path / "aj").exists()


def test_always_overrides_the_platform_and_the_folder_remembers_its_engine(tmp_path: Path) -> None:
    """Whoever runs all in one container may say so. Leaving ends the store."""
    settings = Settings(embedded="always", data_dir=str(tmp_path / "a j"))
    stored = ensure_store(settings, {"DYNO": "web.1"})
    assert stored.redis_url == f"unix://{tmp_path}/a%20j/store.sock"
    assert ensure_store(settings, {}).redis_url == stored.redis_url
    folder = folder_of(settings)
    leave_store(folder)
    assert (folder / "engine").read_text(encoding="ascii") == "valkey\n"
    assert not (folder / "store.sock").exists()


def test_a_server_that_cannot_be_used_is_refused_in_one_line_and_leaves_no_lock(tmp_path: Path) -> None:
    """The keeper's reason reaches the process that asked, and the next attempt is not hindered."""
    broken = Settings(data_dir=str(tmp_path / "aj"), redis_server="/no/such/server")
    for _ in range(2):
        with pytest.raises(SettingsError, match=r"^AJ_REDIS_SERVER is '/no/such/server'; accepted: .*$"):
            ensure_store(broken, {})
