"""What a worker and its work-horse say to each other comes back as it was, and nothing else is taken for it."""

from __future__ import annotations

import pytest

from aj.job import Outcome
from aj.worker.message import Progress, Report


@pytest.mark.parametrize("outcome", [Outcome.succeeded(b'"a\\nb"'), Outcome.lost()], ids=["a success", "a failure"])
def test_a_report_comes_back_as_it_was(outcome: Outcome) -> None:
    """With the number of its run."""
    report = Report(7, outcome, is_fit=True)
    assert Report.unpacked(report.packed()) == report


def test_progress_comes_back_as_it_was() -> None:
    """With the number of its run."""
    progress = Progress(7, b'{"fraction": 0.5}')
    assert Progress.unpacked(progress.packed()) == progress


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"1 1 succeeded \n",
        b"1 1 succeeded \n[1, 2, p",
        b'1 1 succeeded \n"\xff"',
        b"1 1 succeeded \n" + b"[" * 200_000,
        b"1 1 nothing \n0",
        b"x 1 succeeded \n0",
        b"1 succeeded\n0",
    ],
    ids=lambda text: str(text[:30]),
)
def test_what_is_no_report_is_an_error(text: bytes) -> None:
    """Its body has to be JSON: it is written into the job as it is."""
    with pytest.raises(ValueError):
        Report.unpacked(text)


@pytest.mark.parametrize("text", [b"", b"1", b"1\n", b"1\n{", b"{}\n{}"])
def test_what_is_no_progress_is_an_error(text: bytes) -> None:
    """Neither without a number, nor without JSON."""
    with pytest.raises(ValueError):
        Progress.unpacked(text)
