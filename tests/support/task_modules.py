"""Modules of tasks that a test makes up, importable by name while the test lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def make_module(monkeypatch: pytest.MonkeyPatch, name: str, *tasks: Callable[..., Any]) -> str:
    """A module `name` that holds `tasks` in this order; gives the name, for `AJ_TASKS`."""
    module = ModuleType(name)
    for each in tasks:
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, name, module)
    return name


def written_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    """For a fixture: gives what writes a module, of a name and a text, into `folder`, and gives its name."""
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)

    def write(name: str, text: str) -> str:
        (folder / f"{name}.py").write_text(text, "utf-8")
        return name

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
