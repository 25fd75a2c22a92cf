"""Samples as Markdown tables, and the generated parts of `docs/performance.md`. Measures nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.processes import BenchError
from bench.questions import Column, Question
from bench.samples import Samples, Spread

NOTHING = "-"


def number(value: float) -> str:
    """Three significant digits, and all of the digits before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def cell(spread: Spread | None, is_ratio: bool = False) -> str:
    """A median, and behind it the least and the greatest where they are written otherwise."""
    if spread is None:
        return NOTHING
    sign = "x" if is_ratio else ""
    median, least, most = (number(each) for each in (spread.median, spread.least, spread.most))
    return f"{median}{sign}" if least == most else f"{median}{sign} [{least}..{most}]"


def table(question: Question, samples: Samples) -> str:
    """The table of a question. A column of which nothing is known is left out."""

    def cells(column: Column) -> list[str]:
        return [_cell(samples, row, column, question.reference_of(row, samples.rows)) for row in samples.rows]

    filled = [(column, made) for column in question.columns if set(made := cells(column)) - {NOTHING}]
    lines = [[question.rows, *(column.title for column, _ in filled)]]
    lines += [[row, *(made[at] for _, made in filled)] for at, row in enumerate(samples.rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(each, widths) for each in (lines[0], rule, *lines[1:]))


def _cell(samples: Samples, row: str, column: Column, reference: str) -> str:
    if not column.is_ratio:
        spread = samples.spread(row, column.figure)
        return number(spread.median) if spread and column.is_steady else cell(spread)
    if row == reference and samples.spread(row, column.figure):
        return "1x"
    return NOTHING if row == reference else cell(samples.ratio(row, column.figure, reference), is_ratio=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cells[0].ljust(widths[0]),
        *(each.rjust(width) for each, width in zip(cells[1:], widths[1:], strict=True)),
    ]
    return f"| {' | '.join(padded)} |"


def replaced(document: str, part: str, text: str) -> str:
    """`document` with `text` as its generated part of that name. Raises: BenchError: it has no such part."""
    pattern = re.compile(rf"(<!-- bench: {re.escape(part)} -->\n).*?(<!-- end -->)", re.DOTALL)
    made, count = pattern.subn(lambda match: f"{match[1]}{text}\n{match[2]}", document)
    if count != 1:
        raise BenchError(f"the document has {count} parts between '<!-- bench: {part} -->' and '<!-- end -->', not one")
    return made
