"""Locks that end with the processes that hold them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from aj.local.locks import has_owner, is_in_use, lock, share_lock, try_lock


def test_an_exclusive_lock_excludes(tmp_path: Path) -> None:
    """Until it is released, nobody else gets it."""
    with lock(tmp_path / "a", 1.0):
        assert try_lock(tmp_path / "a") is None
        with pytest.raises(TimeoutError):
            lock(tmp_path / "a", 0.02)
    assert not is_in_use(tmp_path / "a")


def test_shared_locks_share_and_are_seen_as_use(tmp_path: Path) -> None:
    """Use is over when the last share has gone; no share is ownership."""
    first, second = share_lock(tmp_path / "a"), share_lock(tmp_path / "a")
    first.release()
    assert is_in_use(tmp_path / "a")
    assert not has_owner(tmp_path / "a")
    second.release()
    assert not is_in_use(tmp_path / "a")


def test_a_file_that_is_not_there_is_not_locked(tmp_path: Path) -> None:
    """Asking creates nothing."""
    assert not has_owner(tmp_path / "a")
    assert not is_in_use(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_keeps_its_parents_share(tmp_path: Path) -> None:
    """A web server's workers use the store after their master was killed; then SIGKILL ends their share too."""
    share = share_lock(tmp_path / "a")
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    share.release()
    assert is_in_use(tmp_path / "a")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not is_in_use(tmp_path / "a")
