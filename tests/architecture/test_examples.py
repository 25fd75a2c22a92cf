"""The examples are what a user of `aj` may write: public names only, in files that can be read at one sitting."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import aj
from tests.architecture.tree import ROOT

EXAMPLES = sorted(ROOT.glob("examples/*/*/**/*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_takes_only_what_is_public(path: Path) -> None:
    """From `aj` itself, never from a room of it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "aj":
            assert {each.name for each in node.names} <= set(aj.__all__)
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not [name for name in names if name.startswith(("aj.", "hooksink", "tests"))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_what_it_holds_and_stays_short(path: Path) -> None:
    """Opened by a docstring, and on a page or two."""
    text = path.read_text("utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) < 150


def test_there_is_an_example() -> None:
    """Else the tests above hold nothing."""
    assert EXAMPLES
