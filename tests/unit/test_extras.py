"""What is said where an extra is missing; that it is said, tests of the installed package show."""

from __future__ import annotations

import tomllib

import pytest

import aj
from aj import extras
from tests.support.processes import ROOT


def test_what_the_extra_brings_is_known_by_its_import_names() -> None:
    """Each requirement of `server` in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {each.partition(">")[0].replace("-", "_") for each in project["optional-dependencies"]["server"]}
    assert required <= set(extras.SERVER)


@pytest.mark.parametrize(("module", "belongs"), [("flask", True), ("rq.job", True), ("rqx", False), (None, False)])
def test_only_a_module_of_the_extra_is_blamed_on_it(module: str | None, belongs: bool) -> None:
    """A module of the user's own that cannot be found stays the error that it is."""
    assert extras.is_of_server(module) is belongs


def test_an_import_that_fails_for_another_reason_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """No extra would help there."""
    monkeypatch.setitem(aj._HOMES, "task", "aj.no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        aj.task  # noqa: B018


def test_a_process_that_lacks_nothing_goes_on() -> None:
    """The tests have all extras."""
    extras.require_server()


def test_a_process_says_what_it_lacks_and_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr, and exit code 2."""
    with pytest.raises(SystemExit) as ended:
        extras.require_server("hooksink", ("flask", "no_such_library"))
    assert ended.value.code == 2
    why = "this needs the extra server, since no_such_library is not installed"
    assert capsys.readouterr() == ("", f"hooksink: {why}: pip install 'flask-aj[server]'\n")
