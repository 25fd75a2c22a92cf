"""The figures of a run, and its violations, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.chaos.audit import Violation, promised
from tests.chaos.evidence import Evidence
from tests.chaos.killer import FREEZE

SHOWN = 50


def figures(evidence: Evidence, kills: Counter[str]) -> dict[str, int]:
    """What was counted, by name, in the order in which it is shown."""
    jobs = promised(evidence)
    documents = [document for _, document in evidence.answers.values()]
    ends = Counter(each.get("error", {}).get("type", each.get("status", "unknown")) for each in documents)
    sent = sum(len(told.ids) for told in evidence.told.values())
    return {
        "jobs accepted": len(jobs),
        "answers 202": len(evidence.promises),
        "of these replays": sum(note["replayed"] for note in evidence.promises),
        **{f"jobs {name}": count for name, count in sorted(ends.items())},
        "runs started": sum(len(runs.starts) for runs in evidence.runs.values()),
        "jobs that ran again": sum(len(runs.starts) > 1 for runs in evidence.runs.values()),
        "webhooks promised": sum(job.callback is not None for job in jobs),
        "webhooks that arrived": len(evidence.told),
        "attempts that arrived": sent,
        **{f"kills of {name}": count for name, count in sorted(kills.items()) if name != FREEZE},
        "kills": kills.total() - kills[FREEZE],
        "store frozen": kills[FREEZE],
    }


def table(counts: dict[str, int]) -> str:
    width = max(map(len, counts))
    return "\n".join(f"{name:<{width}}  {count:>7,}" for name, count in counts.items())


def verdict(violations: Iterable[Violation], seed: int) -> str:
    """One line for each violation, fifty at most, and the seed that chose the kills."""
    found = list(violations)
    if not found:
        return f"seed {seed}: nothing was lost"
    lines = [str(each) for each in found[:SHOWN]]
    left = [f"… and {len(found) - SHOWN} more"] * (len(found) > SHOWN)
    rules = Counter(each.rule for each in found)
    return "\n".join([*lines, *left, *(f"{count} x {rule}" for rule, count in rules.items()), f"seed {seed}: VIOLATED"])
