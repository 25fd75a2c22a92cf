"""A Flask app gets each setting of its environment, by the one line that the documents name."""

from __future__ import annotations

import os
from typing import Any

import pytest
from flask import Flask

from aj.errors import SettingsError
from aj.given import CALLERS_OWN, variable
from aj.settings import Settings
from tests.unit.test_settings import HIDDEN, ROWS


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours is set where the tests run."""
    for called in [each for each in os.environ if each.startswith("AJ_")]:
        monkeypatch.delenv(called)


def from_prefixed_env(**own: Any) -> Settings:
    """The settings of an app that has a config of its own, and took what begins with `AJ_`."""
    app = Flask("host")
    app.config.update(own)
    app.config.from_prefixed_env("AJ")
    return Settings.from_config(app.config, os.environ)


@pytest.mark.parametrize(("name", "text", "value"), [(row[0], row[2], row[3]) for row in ROWS])
def test_every_setting_comes_by_the_prefix(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
) -> None:
    """Also where Flask reads the text as JSON, or takes a prefix away that had to stay."""
    monkeypatch.setenv(variable(name), text)
    assert getattr(from_prefixed_env(), name) == value


@pytest.mark.parametrize(("name", "text"), [(row[0], text) for row in ROWS for text in row[4]])
def test_a_wrong_text_has_the_name_that_a_worker_gives_it(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """Web server and worker say the same of one environment."""
    monkeypatch.setenv(variable(name), text)
    shown = "a value that is not shown" if name in HIDDEN else repr(text)
    with pytest.raises(SettingsError) as caught:
        from_prefixed_env()
    assert str(caught.value).startswith(f"{variable(name)} is {shown}; accepted: ")


@pytest.mark.parametrize("word", ["off", "read", "act"])
def test_the_dashboard_is_shut_from_the_environment(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """An operator's word counts, whatever the app calls its own dashboard, or however it reads its config."""
    monkeypatch.setenv("AJ_DASHBOARD", word)
    assert from_prefixed_env(DASHBOARD={"title": "Shop"}).dashboard == word
    assert Settings.from_config({}, os.environ).dashboard == word
    assert Settings.from_config({"AJ_DASHBOARD": "read"}, os.environ).dashboard == "read"


def test_keys_in_the_environment_guard_an_app_that_has_not_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator who names callers has not left the API open; what the app says itself counts first."""
    monkeypatch.setenv("AJ_API_KEYS", f"shop:{64 * 'a'}")
    assert [each.name for each in Settings.from_config({}, os.environ).api_keys] == ["shop"]
    for own in ("API_KEYS", "AJ_API_KEYS"):
        assert [each.name for each in Settings.from_config({own: f"own:{64 * 'b'}"}, os.environ).api_keys] == ["own"]


@pytest.mark.parametrize("prefix", ["1.10", "NaN"])
def test_text_is_not_changed_on_its_way(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    """Flask makes a number of it, and a worker does not: they would not find each other in the store."""
    monkeypatch.setenv("AJ_PREFIX", prefix)
    monkeypatch.setenv("AJ_DATA_DIR", "null")
    settings = from_prefixed_env()
    assert (settings.prefix, settings.data_dir) == (prefix, "null")


def test_a_config_that_did_not_come_from_the_environment_counts_as_it_is() -> None:
    """What stands there was written after it, or instead."""
    environ = {"AJ_LEASE_S": "20", "AJ_PORT": "8150"}
    settings = Settings.from_config({"LEASE_S": 30}, environ)
    assert (settings.lease_s, settings.port) == (30, 8140)
    with pytest.raises(SettingsError, match=r"^LEASE_S is '1'"):
        Settings.from_config({"LEASE_S": 1}, environ)


def test_a_slip_in_a_variable_is_found() -> None:
    """What callers read is no slip, unless it holds the digests of keys."""
    assert Settings.unknown({"AJ_TIMEOUT": "5", "TIMEOUT": "5", "AJ_PORT": "1", **dict.fromkeys(CALLERS_OWN, "x")}) == [
        "AJ_TIMEOUT is not a setting of this version; did you mean AJ_JOB_TIMEOUT_S?"
    ]
    for slip in ("shop:hunter2", 64 * "a"):
        (said,) = Settings.unknown({"AJ_API_KEY": slip})
        assert said.endswith("did you mean AJ_API_KEYS?")
        assert slip not in said
