"""The measured figures as Markdown: what callers that obey needed, what fixed intervals would have, what is beyond."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from aj.pace import ROUNDED_UP_BY_S
from tests.pace.callers import Learnt
from tests.pace.series import Known, Row

Measured = Mapping[Row, Sequence[Learnt]]
FIXED_S = (1, 5, 30)
# As far as sixteen polls lead where nothing is known.
SPANNED_S = 710


def is_late(row: Row, whole_s: float, late_s: float) -> bool:
    """Later than promised: a share of the whole time, or a second, and what whole seconds may add."""
    return late_s > max(1.0, row.share * whole_s) + ROUNDED_UP_BY_S


def table(measured: Measured) -> str:
    """What callers that obey needed: the middle and the most; then what the same jobs would have cost those who ask
    every so many seconds, computed from their true times, and how many they would have learnt of too late."""
    head = [
        "the task's runs",
        "jobs ahead",
        "callers",
        "promised",
        "polls",
        "late by",
        "of the whole time",
        "beyond it",
    ]
    lines = [[*head, *(f"every {every_s} s" for every_s in FIXED_S)]]
    lines.append(["---"] * len(lines[0]))
    for row, seen in measured.items():
        long = [each for each in seen if each.whole_s >= 1 / row.share]  # else the promise is a second, and no share
        line = [row.lengths, row.queue, f"{len(seen)}", f"{row.polls}, {_percent(row.share)}"]
        line.append(_middle_and_most([each.polls for each in seen], "{:.0f}"))
        line.append(_middle_and_most([each.late_s for each in seen], "{:.1f} s"))
        line.append(_middle_and_most([100 * each.late_s / each.whole_s for each in long], "{:.0f} %"))
        line.append(_beyond(row, seen))
        lines.append([*line, *(_fixed(row, seen, every_s) for every_s in FIXED_S)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _fixed(row: Row, seen: Sequence[Learnt], every_s: int) -> str:
    polls = [math.ceil(each.whole_s / every_s) for each in seen]
    late = [is_late(row, each.whole_s, count * every_s - each.whole_s) for count, each in zip(polls, seen, strict=True)]
    return f"{_middle_and_most(polls, '{:,.0f}')}; {_percent(statistics.fmean(late))} late"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def figures(measured: Measured) -> str:
    """A line of CSV for each job, which the picture is drawn from."""
    lines = [
        f"{row.known},{row.ahead},{each.whole_s:.2f},{each.polls},{each.late_s:.2f}"
        for row, seen in measured.items()
        for each in seen
    ]
    return "\n".join(["known,ahead,whole_s,polls,late_s", *lines, ""])


def beyond(measured: Measured) -> list[str]:
    """The story of each job that was beyond what is promised."""
    return [
        f"{' and '.join(broken)}: {row.lengths}, {row.queue}: {each}"
        for row, seen in measured.items()
        for each in seen
        if (broken := _broken(row, each))
    ]


def _broken(row: Row, seen: Learnt) -> list[str]:
    """What is promised and was not kept, and what of it has a reason that docs/pace.md names."""
    broken = []
    if seen.polls > row.polls:
        broken.append("polls" if row.known is Known.ALIKE or seen.whole_s < SPANNED_S else "polls beyond 710 s")
    if is_late(row, seen.whole_s, seen.late_s):
        by_us = is_late(row, seen.whole_s, seen.late_s - seen.slow_s)
        broken.append("late" if by_us else "late because of slow answers")
    return broken


def _beyond(row: Row, seen: Sequence[Learnt]) -> str:
    counts = Counter(what for each in seen for what in _broken(row, each))
    return ", ".join(f"{count} {what}" for what, count in counts.items()) or "none"


def _middle_and_most(values: Sequence[float], form: str) -> str:
    return f"{form.format(statistics.median(values))}, {form.format(max(values))}" if values else "-"
