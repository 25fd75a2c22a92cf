"""The report: text for people, JSON for scripts. Makes lines and values; prints nothing."""

from __future__ import annotations

from typing import Any

from aj.check.exchange import escaped
from aj.check.point import Finding, Level, State
from aj.check.run import Outcome

MARKS = {State.HELD: "ok", State.BROKEN: "BROKEN", State.SKIPPED: "skipped", State.NOT_APPLICABLE: "n/a"}
COLOURS = {State.HELD: "green", State.BROKEN: "red", State.SKIPPED: "yellow", State.NOT_APPLICABLE: "bright_black"}


def headline(finding: Finding) -> str:
    """One point in one line."""
    return f"{MARKS[finding.state]:8}{finding.point.name}: {finding.point.sentence}"


def details(finding: Finding, quiet: bool) -> list[str]:
    """The lines below it: why, the source of the rule, and the exchange that shows it."""
    lines = [f"        {escaped(finding.why)}"] if finding.why else []
    if finding.state in (State.SKIPPED, State.NOT_APPLICABLE):
        return lines
    if quiet and finding.state is State.HELD:
        return []
    lines.append(f"        rule: {finding.point.source}")
    for exchange in finding.exchanges:
        lines += [f"        {line}" for line in exchange.shown()] + [""]
    return lines


def not_applicable(outcome: Outcome) -> list[str]:
    """What does not apply, in a line for each reason."""
    names: dict[str, list[str]] = {}
    for finding in outcome.findings:
        if finding.state is State.NOT_APPLICABLE:
            names.setdefault(finding.why, []).append(finding.point.name)
    return [f"{MARKS[State.NOT_APPLICABLE]:8}{', '.join(each)}: {escaped(why)}" for why, each in names.items()]


def summary(outcome: Outcome, level: Level) -> str:
    """The last line."""
    counts = ", ".join(f"{outcome.count(state)} {state}" for state in State)
    if outcome.unplayable:
        return f"{level}: could not be played: {escaped(outcome.unplayable)}; so far {counts}"
    return f"{level}: {counts}"


def document(outcome: Outcome, level: Level, url: str, profile: str) -> dict[str, Any]:
    """The whole report as a JSON value."""
    return {
        "url": url,
        "profile": profile,
        "level": level,
        "counts": {state: outcome.count(state) for state in State},
        "unplayable": outcome.unplayable or None,
        "points": [_as_value(finding) for finding in outcome.findings],
    }


def _as_value(finding: Finding) -> dict[str, Any]:
    each = finding.point
    return {
        "name": each.name,
        "level": each.level,
        "sentence": each.sentence,
        "source": each.source,
        "state": finding.state,
        "why": escaped(finding.why) or None,
        "exchanges": [{"took_s": round(x.took_s, 3), "lines": x.shown()} for x in finding.exchanges],
    }


def exit_code(outcome: Outcome) -> int:
    """0: nothing is broken; 1: something is; 3: it could not be played."""
    if outcome.unplayable:
        return 3
    return 1 if outcome.count(State.BROKEN) else 0
