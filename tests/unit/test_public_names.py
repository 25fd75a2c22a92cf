"""What `import aj` gives, and what it must not load."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import aj
from tests.support.processes import ROOT, clean_env

HEAVY = ["flask", "werkzeug", "redis", "rq", "requests", "urllib3", "gunicorn"]


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `statement`."""
    code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_env({}), cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def imported_names() -> set[str]:
    """The names that `aj/__init__.py` imports from modules of ours, at once or when they are asked for."""
    tree = ast.parse(Path(aj.__file__).read_text("utf-8"))
    froms = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    return {
        alias.asname or alias.name for each in froms if (each.module or "").startswith("aj.") for alias in each.names
    }


def test_all_is_the_list_of_public_names() -> None:
    """What the package imports from its modules, nothing more and nothing less."""
    assert set(aj.__all__) == imported_names()
    assert len(set(aj.__all__)) == len(aj.__all__)


def test_the_public_names_are_those_of_the_documentation() -> None:
    """A name that goes, or comes, is a change that users see."""
    assert sorted(aj.__all__) == [
        "JobsBlueprint",
        "TaskError",
        "__version__",
        "create_app",
        "report_progress",
        "task",
    ]


@pytest.mark.parametrize("name", aj.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """Also those that are loaded when they are asked for; each from a module of ours."""
    value = getattr(aj, name)
    assert name == "__version__" or value.__module__.startswith("aj.")


def test_another_name_is_an_attribute_error() -> None:
    """In Python's own words."""
    with pytest.raises(AttributeError, match="module 'aj' has no attribute 'nothing'"):
        aj.nothing  # noqa: B018
    assert not hasattr(aj, "nothing")


def test_importing_aj_loads_nothing_heavy() -> None:
    """A module of tasks can be imported anywhere, quickly."""
    assert not loaded_by("import aj") & set(HEAVY)


def test_writing_a_task_loads_nothing_heavy() -> None:
    """Nor does calling it."""
    statement = (
        "from aj import task, TaskError, report_progress\n@task\ndef f(n: int) -> int: return n\nassert f(5) == 5"
    )
    assert not loaded_by(statement) & set(HEAVY)


def test_the_app_is_loaded_when_it_is_asked_for() -> None:
    """By the same name."""
    assert {"flask", "redis", "rq"} <= loaded_by("from aj import create_app")
    assert "flask" in loaded_by("import aj; aj.JobsBlueprint")


def test_a_decorated_function_is_still_the_function() -> None:
    """It can be called and keeps its name and its docstring."""

    @aj.task(timeout_s=3)
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(1) == 2
    assert add(1, b=4) == 5
    assert (add.__name__, add.__doc__) == ("add", "Adds.")


def test_a_task_error_is_an_exception() -> None:
    """Caught as any other."""
    assert issubclass(aj.TaskError, Exception)
    assert str(aj.TaskError("shown")) == "shown"
