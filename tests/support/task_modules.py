"""Modules of tasks that a test makes up, importable by name while the test lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
