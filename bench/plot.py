"""The pictures of `docs/performance.md`, as SVG that can be read on light and on dark ground. No library for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bench.samples import Samples, Spread, percentile

LEFT, TOP, WIDTH, HEIGHT, LINE = 64, 46, 620, 300, 22
POINTS = 200
LIGHT = ("#0b6e4f", "#1f5fbf", "#c0392b", "#b36b00", "#7a3fa0", "#57606a")
DARK = ("#3fb98a", "#6aa5ff", "#ff7b6b", "#e3a13a", "#c297ff", "#9aa4af")
DASHES = ("", "7 3", "", "7 3", "2 3", "10 3 2 3")


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis from `low` to `high` with its marks."""

    low: float
    high: float
    marks: tuple[float, ...]

    @classmethod
    def around(cls, values: Sequence[float]) -> Axis:
        """Wide enough for all `values`, which are above 0, with marks at 1, 2 and 5 of each decade."""
        first, last = (math.floor(math.log10(each)) for each in (min(values), max(values)))
        steps = [digit * 10.0**decade for decade in range(first, last + 2) for digit in (1, 2, 5)]
        low = max(step for step in steps if step <= min(values))
        high = min(step for step in steps if step >= max(values) and step > low)
        return cls(low, high, tuple(step for step in steps if low <= step <= high))

    def share(self, value: float) -> float:
        """Where `value` lies, 0 at the low end and 1 at the high one; outside it is at the end."""
        return min(1.0, max(0.0, math.log(value / self.low) / math.log(self.high / self.low)))


def latency_picture(samples: Samples) -> str:
    """How many of the ends are known after how many ms, a line for each row."""
    took = {row: sorted(times) for row, times in samples.took_ms.items()}
    axis = Axis.around([each for times in took.values() for each in (times[0], percentile(times, 0.995))])
    parts = [_vertical(LEFT + WIDTH * axis.share(mark), f"{mark:g}") for mark in axis.marks]
    parts += [_horizontal(TOP + HEIGHT * (1 - share / 100), f"{share} %") for share in (0, 25, 50, 75, 100)]
    named = {}
    for at, (row, times) in enumerate(took.items()):
        points = []
        for step in range(POINTS + 1):
            share = step / POINTS
            points.append((LEFT + WIDTH * axis.share(percentile(times, share)), TOP + HEIGHT * (1 - share)))
        parts.append(_path(points, at))
        named[row] = f"{row}: half within {percentile(times, 0.5):.3g} ms"
    return _picture("Ends that the caller knows of, by the time since its POST", "ms, logarithmic", parts, named)


def growth_picture(samples: Samples) -> str:
    """How many of each a second with more and more stored jobs; a bar from the least to the most of the rounds."""
    found: dict[str, list[Spread]] = {}
    sizes: dict[str, None] = {}
    for row in samples.rows:
        kind, _, size = row.partition(", ")
        sizes[size] = None
        found.setdefault(kind, []).extend(each for each in (samples.spread(row, "per_s"),) if each)
    axis = Axis.around([each for line in found.values() for spread in line for each in (spread.least, spread.most)])
    places = [LEFT + WIDTH * (0.08 + 0.84 * at / max(1, len(sizes) - 1)) for at in range(len(sizes))]

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - axis.share(value))

    parts = [_vertical(x, row) for x, row in zip(places, sizes, strict=True)]
    parts += [_horizontal(y(mark), f"{mark:,.0f}") for mark in axis.marks]
    for at, line in enumerate(found.values()):
        points = list(zip(places, (y(each.median) for each in line), strict=True))
        parts.append(_path(points, at))
        for (x, middle), each in zip(points, line, strict=True):
            bar = f"M{x:.1f},{y(each.least):.1f}V{y(each.most):.1f}"
            parts.append(f'<path class="s{at}" style="stroke-dasharray:none" d="{bar}"/>')
            parts.append(f'<circle class="f{at}" cx="{x:.1f}" cy="{middle:.1f}" r="3.5"/>')
    return _picture(
        "aj with more and more ended jobs in the store",
        "ended jobs in the store",
        parts,
        {kind: f"{kind}, a second" for kind in found},
    )


def _vertical(x: float, text: str) -> str:
    line = f'<path class="grid" d="M{x:.1f},{TOP}V{TOP + HEIGHT}"/>'
    return f'{line}<text x="{x:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{text}</text>'


def _horizontal(y: float, text: str) -> str:
    line = f'<path class="grid" d="M{LEFT},{y:.1f}H{LEFT + WIDTH}"/>'
    return f'{line}<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'


def _path(points: Sequence[tuple[float, float]], at: int) -> str:
    return f'<path class="s{at}" d="M{"L".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _picture(title: str, below: str, parts: Sequence[str], named: Mapping[str, str]) -> str:
    """The whole picture: ground, title, `parts`, and a legend that names the lines in their order."""
    width, legend = LEFT + WIDTH + 24, TOP + HEIGHT + 64
    height = legend + LINE * len(named)
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">',
        f"<style>{_rules(LIGHT, '#ffffff', '#1f2328', '#d8dee4')}"
        f"@media (prefers-color-scheme: dark){{{_rules(DARK, '#0d1117', '#e6edf3', '#30363d')}}}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text x="{LEFT}" y="{TOP - 18}" font-weight="bold">{escape(title)}</text>',
        f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 38}" text-anchor="end">{escape(below)}</text>',
        *parts,
    ]
    for at, text in enumerate(named.values()):
        x, y = LEFT, legend + LINE * at
        made.append(f'<path class="s{at}" d="M{x},{y - 4}h28"/><text x="{x + 34}" y="{y}">{escape(text)}</text>')
    return "\n".join([*made, "</svg>", ""])


def _rules(colours: Sequence[str], ground: str, ink: str, grid: str) -> str:
    rules = [f".ground{{fill:{ground}}}text{{fill:{ink}}}.grid{{stroke:{grid}}}"]
    for at, (colour, dashes) in enumerate(zip(colours, DASHES, strict=True)):
        rules.append(f".s{at}{{fill:none;stroke:{colour};stroke-width:2;stroke-dasharray:{dashes or 'none'}}}")
        rules.append(f".f{at}{{fill:{colour}}}")
    return "".join(rules)
