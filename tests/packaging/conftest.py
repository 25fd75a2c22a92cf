"""The distribution, built once for those who look into it or install it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.environments import build, copy_of_clone


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the clone in a folder of another name, without git."""
    return copy_of_clone(tmp_path_factory.mktemp("source") / "unpacked")


@pytest.fixture(scope="session")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made of it."""
    folder = tmp_path_factory.mktemp("built")
    build(source, folder)
    return folder
