"""Files and functions stay small enough to be read."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.tree import Module, functions, modules


@pytest.mark.parametrize("module", modules().values(), ids=lambda module: module.name)
def test_a_file_says_what_it_holds_and_stays_short(module: Module) -> None:
    """Under 300 lines, opened by a docstring."""
    assert module.lines < 300
    assert ast.get_docstring(module.tree), "no docstring"


@pytest.mark.parametrize("module", modules().values(), ids=lambda module: module.name)
def test_a_function_fits_a_screen_and_takes_few_parameters(module: Module) -> None:
    """At most 50 lines and six parameters, `self` not counted."""
    for function in functions(module):
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        count = len([name for name in arguments if name not in ("self", "cls")])
        assert lines <= 50, f"{function.name} has {lines} lines"
        assert count <= 6, f"{function.name} has {count} parameters"


@pytest.mark.parametrize("name", ["wsgi", "worker"])
def test_the_processes_at_the_root_only_assemble(name: str) -> None:
    """At most 20 lines: settings, then app or worker."""
    assert modules()[name].lines <= 20
