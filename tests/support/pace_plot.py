"""Draws docs/pace.svg: `python -m tests.support.pace_plot`. The same bytes on each run, and no library for it.

Lines are simulated. Dots are measured, as docs/pace_measured.csv has them, which `python -m tests.pace` writes.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aj.pace import KEPT
from tests.support.pace_simulation import Case, Course, simulate, wild, within_four

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURE, MEASURED = DOCS / "pace.svg", DOCS / "pace_measured.csv"
LENGTHS_S = tuple(0.05 * 10 ** (step / 8) for step in range(28))
QUEUES = ((0, 40), (10, 12), (100, 6), (1000, 2))
BINS_PER_DECADE, FIRST_DECADE, LAST_DECADE = 4, -1, 5
WIDTH, HEIGHT, LEFT, TOP, GAP = 410, 300, 60, 50, 90
Line = list[tuple[float, float]]
ALIKE, WILD, UNKNOWN = "alike within a factor of 4", "wild, 0.05 s to 10 min", "nothing known"
# The words of the measured figures; a task behind others of its queue is simulated nowhere, and left out.
MARKED = {"alike": ALIKE, "wild": WILD, "nothing": UNKNOWN}
COLOURS = {
    ALIKE: ("#0b6e4f", ""),
    WILD: ("#1f5fbf", ""),
    UNKNOWN: ("#7a3fa0", ""),
    "every second": ("#c0392b", "6 3"),
    "every 5 s": ("#d98200", "6 3"),
    "every 30 s": ("#777777", "6 3"),
}


def courses(remembered: int = KEPT) -> list[Course]:
    """Jobs of all lengths in queues of all lengths, of lengths within a factor of 4."""
    return [
        simulate(Case(within_four(least_s), ahead, workers=4, remembered=remembered), seed)
        for least_s in LENGTHS_S
        for ahead, seeds in QUEUES
        for seed in range(seeds)
    ]


def wild_courses() -> list[Course]:
    return [simulate(Case(wild, ahead, workers=4), seed) for ahead, seeds in QUEUES for seed in range(20 * seeds)]


def measured() -> dict[str, list[Course]]:
    """What callers of a live deployment got, by what was known of their jobs."""
    made: dict[str, list[Course]] = {}
    with MEASURED.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            course = Course(float(row["whole_s"]), int(row["polls"]), float(row["late_s"]), True)
            if row["known"] in MARKED:
                made.setdefault(MARKED[row["known"]], []).append(course)
    return made


def fixed(every_s: float) -> list[Course]:
    """What a caller gets that asks every so many seconds, whatever it is told."""
    made = []
    for step in range(1000 * FIRST_DECADE, 1000 * LAST_DECADE, 7):
        whole_s = 10 ** (step / 1000)
        polls = math.ceil(whole_s / every_s)
        made.append(Course(whole_s, polls, polls * every_s - whole_s, True))
    return made


def binned(made: list[Course], of: Callable[[list[Course]], float]) -> Line:
    """One point for each bin of whole times that holds enough jobs."""
    bins: dict[int, list[Course]] = {}
    for course in made:
        bins.setdefault(math.floor(math.log10(course.whole_s) * BINS_PER_DECADE), []).append(course)
    return [
        (10 ** ((at + 0.5) / BINS_PER_DECADE), of(bins[at]))
        for at in sorted(bins)
        if len(bins[at]) >= 8 and FIRST_DECADE * BINS_PER_DECADE <= at < LAST_DECADE * BINS_PER_DECADE
    ]


def mean_polls(made: list[Course]) -> float:
    return statistics.fmean(course.polls for course in made)


def usual_worst_s(made: list[Course]) -> float:
    """The lateness that nineteen of twenty stay under, in seconds."""
    return sorted(course.late_s for course in made)[int(0.95 * len(made))]


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram on two logarithmic axes. `extra` is a thin line for comparison, `decades` what y spans."""

    title: str
    decades: tuple[int, int]
    lines: dict[str, Line]
    dots: dict[str, Line]
    extra: Line


def drawn_panel(left: int, panel: Panel) -> list[str]:
    low, high = panel.decades

    def x(value: float) -> float:
        return left + WIDTH * (math.log10(value) - FIRST_DECADE) / (LAST_DECADE - FIRST_DECADE)

    def y(value: float) -> float:
        return TOP + HEIGHT * (high - math.log10(max(value, 10.0**low))) / (high - low)

    def path(line: Line, style: str) -> str:
        points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line if b <= 10**high)
        return f'<polyline fill="none" points="{points}" {style}/>'

    made = [f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{panel.title}</text>']
    for decade in range(FIRST_DECADE, LAST_DECADE + 1):
        at = x(10.0**decade)
        made.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{TOP + HEIGHT}" stroke="#e4e4e4"/>')
        made.append(f'<text x="{at:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{10.0**decade:g}</text>')
    for decade in range(low, high + 1):
        at = y(10.0**decade)
        made.append(f'<line x1="{left}" y1="{at:.1f}" x2="{left + WIDTH}" y2="{at:.1f}" stroke="#e4e4e4"/>')
        made.append(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>')
    made.append(f'<text x="{left + WIDTH}" y="{TOP + HEIGHT + 36}" text-anchor="end">whole time of the job, s</text>')
    made.append(path(panel.extra, 'stroke="#000000" stroke-width="0.8" stroke-dasharray="2 3"'))
    for name, line in panel.lines.items():
        colour, dashes = COLOURS[name]
        made.append(path(line, f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"'))
    for name, line in panel.dots.items():
        made += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3.5" fill="{COLOURS[name][0]}"/>' for a, b in line]
    return made


def _each_binned(made: dict[str, list[Course]], of: Callable[[list[Course]], float]) -> dict[str, Line]:
    return {name: binned(each, of) for name, each in made.items()}


def drawn() -> str:
    made = dict(zip(COLOURS, (courses(), wild_courses(), courses(remembered=0)), strict=False))
    made |= {"every second": fixed(1), "every 5 s": fixed(5), "every 30 s": fixed(30)}
    lived = measured()
    polls, polls_lived = (_each_binned(each, mean_polls) for each in (made, lived))
    late, late_lived = (_each_binned(each, usual_worst_s) for each in (made, lived))
    right = LEFT + WIDTH + GAP
    share = [(10.0 ** (step / 10), max(1.0, 0.2 * 10.0 ** (step / 10))) for step in range(-10, 51)]
    eight = [(0.1, 8.0), (1e5, 8.0)]
    total, bottom = right + WIDTH + 30, TOP + HEIGHT + 100
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{bottom}" viewBox="0 0 {total} {bottom}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{total}" height="{bottom}" fill="#ffffff"/>',
        *drawn_panel(LEFT, Panel("Polls until the end is known (mean)", (0, 4), polls, polls_lived, eight)),
        *drawn_panel(
            right, Panel("How late it is learnt of, s (95 of 100 are earlier)", (-1, 5), late, late_lived, share)
        ),
    ]
    for at, (name, (colour, dashes)) in enumerate(COLOURS.items()):
        x, y = LEFT + 300 * (at % 3), TOP + HEIGHT + 62 + 22 * (at // 3)
        line = f'<line x1="{x}" y1="{y - 4}" x2="{x + 30}" y2="{y - 4}" stroke="{colour}" stroke-width="2"'
        parts.append(f'{line} stroke-dasharray="{dashes}"/><text x="{x + 38}" y="{y}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")
