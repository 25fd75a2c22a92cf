"""What the distribution holds: all of the two packages, and nothing else."""

from __future__ import annotations

import tarfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from aj.version import __version__
from tests.support.environments import build, the_one

PACKAGES = ("aj", "hooksink")
INFO = f"flask_aj-{__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return the_one(built, "*.whl")


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as opened:
        return Parser().parsestr(opened.read(f"{INFO}/METADATA").decode())


def files_of(wheel: Path) -> set[str]:
    with ZipFile(wheel) as opened:
        return set(opened.namelist())


def files_of_packages(source: Path) -> set[str]:
    """Scripts, templates, profiles and whatever else a package reads included."""
    found = (path for package in PACKAGES for path in (source / package).rglob("*") if path.is_file())
    return {path.relative_to(source).as_posix() for path in found}


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(source: Path, wheel: Path) -> None:
    """A file that is read at run time cannot be forgotten, and no test, bench or example is installed."""
    held = {name for name in files_of(wheel) if not name.startswith(INFO)}
    assert held == files_of_packages(source)
    assert {"aj/py.typed", "hooksink/py.typed", "aj/store/lua/submit.lua"} <= held


def test_a_wheel_of_the_clone_holds_what_one_of_the_sdist_does(source: Path, wheel: Path, tmp_path: Path) -> None:
    """`pip install .` needs no git and gives the same."""
    build(source, tmp_path, "--wheel")
    assert files_of(the_one(tmp_path, "*.whl")) == files_of(wheel)


def test_the_sdist_has_what_it_is_built_from_and_its_licence(source: Path, built: Path) -> None:
    """Whoever packages it for a distribution needs nothing else."""
    with tarfile.open(the_one(built, "*.tar.gz")) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert files_of_packages(source) | {"pyproject.toml", "README.md", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "examples/"))]


def test_the_wheel_has_the_licence_and_the_command(wheel: Path) -> None:
    """`aj` is on the path of whoever installs it."""
    with ZipFile(wheel) as opened:
        assert "MIT License" in opened.read(f"{INFO}/licenses/LICENSE").decode()
        assert "aj = aj.cli:main" in opened.read(f"{INFO}/entry_points.txt").decode()
    assert wheel.name == f"flask_aj-{__version__}-py3-none-any.whl"


def test_the_metadata_say_what_it_needs(metadata: Message) -> None:
    """Two libraries for the client and the command line, the rest by extras; one version, which is the package's."""
    requires = metadata.get_all("Requires-Dist", [])
    assert sorted(each.partition(">")[0] for each in requires if "extra ==" not in each) == ["click", "requests"]
    assert set(metadata.get_all("Provides-Extra", [])) == {"server", "docs", "embedded", "metrics"}
    assert (metadata["Name"], metadata["Version"]) == ("flask-aj", __version__)
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
