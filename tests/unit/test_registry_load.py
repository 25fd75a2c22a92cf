"""How a process finds its tasks: modules are imported, and what is wrong with them is said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from aj.errors import SettingsError
from aj.registry import Registry
from tests.support.task_modules import written_modules


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    yield from written_modules(tmp_path, monkeypatch)


def functions(*names: str) -> str:
    """The text of a module with tasks of these names."""
    return "from aj import task\n" + "".join(f"@task\ndef {name}(n: int) -> int:\n    return n\n" for name in names)


def test_tasks_stand_in_the_order_of_their_modules_and_the_first_is_the_default(
    module: Callable[[str, str], str],
) -> None:
    """The first of the first module, not the first by name."""
    registry = Registry.load((module("one_of_two", functions("z", "a")), module("two_of_two", functions("b"))))
    assert [each.name for each in registry] == ["z", "a", "b"]
    assert registry.default.name == "z"


def test_a_task_is_found_by_its_exact_name(module: Callable[[str, str], str]) -> None:
    """And by nothing that looks like a way into Python."""
    registry = Registry.load((module("named_tasks", functions("a")),))
    assert registry.get("a") is registry.default
    for name in ("", "A", "a ", "named_tasks.a", "os.system", "__class__"):
        assert registry.get(name) is None


def test_a_module_that_is_named_twice_is_loaded_once(module: Callable[[str, str], str]) -> None:
    """A function imported from elsewhere is the same task, too."""
    one = module("twice_named", functions("a"))
    two = module("importing", "from twice_named import a\n")
    assert [each.name for each in Registry.load((one, one, two))] == ["a"]


def test_two_functions_of_one_name_are_refused(module: Callable[[str, str], str]) -> None:
    """Which of them would run is not left to chance."""
    names = (module("first_a", functions("a")), module("second_a", functions("a")))
    with pytest.raises(SettingsError, match="two tasks are named 'a'"):
        Registry.load(names)


@pytest.mark.parametrize("name", ["no_such_module_here", "aj.no_such_module", "no_such_package.tasks"])
def test_a_module_that_is_not_there_is_named(name: str) -> None:
    """With the setting that names it."""
    with pytest.raises(SettingsError, match=f"AJ_TASKS names '{name}', which cannot be imported"):
        Registry.load((name,))


def test_a_module_without_tasks_is_refused(module: Callable[[str, str], str]) -> None:
    """Where no other has one; a deployment without tasks can do nothing."""
    with pytest.raises(SettingsError, match="AJ_TASKS is 'bare_module', where no function is marked"):
        Registry.load((module("bare_module", "x = 1\n"),))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_dependency\n", ModuleNotFoundError),
        ("from aj import no_such_name\n", ImportError),
        ("1 / 0\n", ZeroDivisionError),
        ("def\n", SyntaxError),
    ],
)
def test_a_module_that_breaks_lets_its_own_error_through(
    module: Callable[[str, str], str], text: str, error: type[Exception]
) -> None:
    """A traceback into the module helps its author; a line about AJ_TASKS would hide it."""
    with pytest.raises(error) as caught:
        Registry.load((module("broken_module", text),))
    assert not isinstance(caught.value, SettingsError)


def test_a_wrong_task_stops_the_import(module: Callable[[str, str], str]) -> None:
    """As a wrong setting."""
    with pytest.raises(SettingsError, match="'n' has no annotation"):
        Registry.load((module("wrong_task", "from aj import task\n@task\ndef a(n): ...\n"),))


@pytest.mark.parametrize("line", ["from flask import current_app, g, request", "from unittest.mock import call"])
def test_what_a_module_imports_for_its_tasks_is_passed_over(module: Callable[[str, str], str], line: str) -> None:
    """Flask's proxies raise when they are asked for anything outside an app, and a mock has every attribute."""
    registry = Registry.load((module("with_imports", f"{line}\n{functions('a')}"),))
    assert [each.name for each in registry] == ["a"]


def test_loading_leaves_the_module_importable(module: Callable[[str, str], str]) -> None:
    """It is imported as by anybody else."""
    Registry.load((module("kept_module", functions("a")),))
    assert isinstance(sys.modules["kept_module"], ModuleType)
