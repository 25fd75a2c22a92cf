"""deploy/alerts.yml and docs/operating.md speak of alerts, metrics, words and tests that exist."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from aj import views_metrics
from aj.errors import Problem
from aj.job import CallbackState, ErrorType, Status
from aj.store import Reading
from tests.docs.deployed import DEPLOY, env_of
from tests.support.processes import ROOT

FILE = DEPLOY / "alerts.yml"
RULES: list[dict[str, Any]] = yaml.safe_load(FILE.read_text("utf-8"))["groups"][0]["rules"]
PAGE = (ROOT / "docs/operating.md").read_text("utf-8")
EXPRESSIONS = {rule["alert"]: rule["expr"] for rule in RULES}
QUESTIONS = [line.split("|")[2] for line in PAGE.splitlines() if re.match(r"\| [^|]*\? \|", line)]


def exposed() -> set[str]:
    """Every name that a scrape brings."""
    families = list(views_metrics.Exposition(Reading({}, 0, 0, 0, None, [], False), ["square"]).collect())
    names = {family.name + "_total" if family.type == "counter" else family.name for family in families}
    histograms = {family.name for family in families if family.type == "histogram"}
    return names | {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}


def problems(kind: type[Problem] = Problem) -> set[str]:
    return {each.slug for each in kind.__subclasses__()}.union(*(problems(each) for each in kind.__subclasses__()))


@pytest.mark.parametrize("expression", [*EXPRESSIONS.values(), *QUESTIONS])
def test_an_expression_asks_for_metrics_and_words_that_exist(expression: str) -> None:
    """A metric that was renamed would make an alert silent for ever."""
    assert set(re.findall(r"\baj_\w+", expression)) <= exposed()
    words = {*Status, *ErrorType, *CallbackState, *problems()}
    named = [word for text in re.findall(r'(?:outcome|state)[!=~]+"([^"]+)"', expression) for word in text.split("|")]
    assert set(named) <= words


def test_prometheus_finds_no_fault_in_the_rules() -> None:
    """Where its `promtool` is at hand; else that they have what a rule needs."""
    promtool = shutil.which("promtool")
    if promtool is not None:
        done = subprocess.run([promtool, "check", "rules", FILE], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for rule in RULES:
        assert (
            {"alert", "expr", "labels", "annotations"} <= set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        )
        assert set(rule["labels"]) == {"severity"}
        assert set(rule["annotations"]) == {"summary"}


def test_prometheus_is_told_where_the_figures_and_the_rules_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules beside its file, and the path at which the application of deploy/app tells its figures."""
    told = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    assert [(DEPLOY / each).resolve() for each in told["rule_files"]] == [FILE]
    (scrape,) = told["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": ["127.0.0.1:8000"]}]
    for name, value in {**env_of(DEPLOY / "shop.env"), "AJ_TASKS": "tests.support.tasks"}.items():
        monkeypatch.setenv(name, value)
    app = runpy.run_path(str(DEPLOY / "app/shop.py"))["create_app"]()
    assert scrape["metrics_path"] in {rule.rule for rule in app.url_map.iter_rules()}


def test_the_page_says_what_to_do_about_each_alert() -> None:
    """One row each, in the same order."""
    assert re.findall(r"^\| `(Aj\w+)` \|", PAGE, re.MULTILINE) == list(EXPRESSIONS)


def test_each_failure_names_the_test_that_holds_it() -> None:
    """What `aj` does by itself is not a hope."""
    section = PAGE.partition("## When something breaks")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        found = re.search(r"`(tests/[\w/.]+)` \|$", row)
        assert found is not None, row
        assert (ROOT / found[1]).is_file(), row
