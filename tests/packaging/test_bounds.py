"""How `./run bounds` knows what to install. That the tests pass with it, it shows itself."""

from __future__ import annotations

import re

import pytest

from tests.bounds import TOOLS, locked, lowest
from tests.support.processes import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")


def project(requirement: str) -> str:
    return f"""
[build-system]
requires = ["setuptools>=77.0.3"]
[project]
dependencies = ["click>=8.1.8"]
[project.optional-dependencies]
server = ["{requirement}"]
"""


def test_the_oldest_of_each_is_installed() -> None:
    """What builds, what everybody needs, and what an extra brings; an upper bound is left to the metadata."""
    assert lowest(project("gunicorn>=27.0.1,<28")) == ["setuptools==77.0.3", "click==8.1.8", "gunicorn==27.0.1"]


@pytest.mark.parametrize("requirement", ["flask", "flask>=3", "flask==3.1.0", "flask~=3.1.0", "flask>3.0.0"])
def test_a_requirement_without_an_exact_oldest_release_is_refused(requirement: str) -> None:
    """It would be tested with whatever pip likes best."""
    with pytest.raises(ValueError, match=re.escape(requirement)):
        lowest(project(requirement))


def test_the_documents_say_why_each_bound_is_where_it_is() -> None:
    """One row for each in docs/dependencies.md, and no other."""
    rows = re.findall(
        r"^\| ([a-z0-9-]+) \| ([0-9.]+) \|", (ROOT / "docs/dependencies.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(f"{name}=={version}" for name, version in rows) == sorted(lowest(PROJECT))


def test_the_tools_that_test_are_those_of_the_lock() -> None:
    """A new release of one breaks no build of ours on a day of its own choice."""
    assert len(locked((ROOT / "requirements.txt").read_text("utf-8"), TOOLS)) == len(TOOLS)
