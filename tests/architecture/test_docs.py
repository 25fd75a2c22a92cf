"""The documents say what the code says."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

import pytest

from aj import errors, views_metrics
from aj.cli.api import DEFAULT_URL
from aj.errors import Problem
from aj.given import CALLERS_OWN, variable
from aj.job import CallbackState, ErrorType, Status
from aj.settings import Allowed, Settings
from aj.store import Reading
from tests.architecture.tree import ROOT

CONTRACT = (ROOT / "docs/contract.md").read_text("utf-8")
SETTINGS = (ROOT / "docs/settings.md").read_text("utf-8")


def _shown(default: Any) -> str:
    """A default as the table of settings writes it."""
    if default in (None, ()):
        return "none"
    if isinstance(default, tuple):
        return ",".join(_shown(each) for each in default)
    if isinstance(default, Allowed):
        assert default.network is not None
        return f"{default.network.network_address}:{default.port}"
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_the_table_of_settings_has_every_setting_with_its_default_and_no_other() -> None:
    """One row per field of Settings, HOOKSINK_LOG, which is the receiver's own, and what the command line reads."""
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", SETTINGS, re.MULTILINE))
    expected = {variable(each.name): f"`{_shown(each.default)}`" for each in fields(Settings)}
    expected |= dict(zip(CALLERS_OWN, (f"`{DEFAULT_URL}`", "none", "none"), strict=True))
    assert all(each.default is not MISSING for each in fields(Settings))
    rows_of_settings = {name: text.strip() for name, text in rows.items() if name.startswith("AJ_")}
    assert rows_of_settings == {name: "none" if text == "`none`" else text for name, text in expected.items()}
    assert "HOOKSINK_LOG" in rows


@pytest.mark.parametrize("word", [*Status, *ErrorType, *CallbackState])
def test_every_status_error_type_and_callback_state_stands_in_the_contract(word: str) -> None:
    """What a caller can meet is written down."""
    assert f"`{word}`" in CONTRACT


def test_the_table_of_problem_types_is_complete() -> None:
    """Each leaf of the tree with its status and whether a retry helps."""
    leaves = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Problem)]
    expected = {
        (each.slug, str(each.status), "yes" if each.retryable else "no") for each in leaves if each is not Problem
    }
    assert set(re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \| (yes|no) \|", CONTRACT, re.MULTILINE)) == expected


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "docs/reliability.md"])
def test_a_document_names_tests_that_exist(document: str) -> None:
    """Each invariant, and each failure that is survived, points at the file that holds it."""
    named = set(re.findall(r"`(tests/[\w/.]+)`", (ROOT / document).read_text("utf-8")))
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_failure_mode_has_its_test() -> None:
    """Each row of the page's tables ends with the test that holds it."""
    text = (ROOT / "docs/reliability.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.endswith("| held by |")]
    assert len(rows) >= 20
    assert [row for row in rows if not re.search(r"`tests/[\w/.]+` \|$", row)] == []


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        *map(str, ROOT.glob("docs/*.md")),
        *map(str, ROOT.glob("examples/*/*.md")),
    ],
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    """No dead relative link."""
    path = ROOT / document
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_table_of_metrics_is_complete() -> None:
    """Each metric has its row, and there is no other."""
    reading = Reading({}, 0, 0, 0, None, [], False)
    told = {each.name for each in views_metrics.Exposition(reading, ["square"]).collect()}
    rows = re.findall(r"^\| `(aj_\w+)` \|[^|]*\|", (ROOT / "docs/metrics.md").read_text("utf-8"), re.MULTILINE)
    assert {name.removesuffix("_total") for name in rows} == told
