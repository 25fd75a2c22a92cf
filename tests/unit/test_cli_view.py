"""How a job looks to a person, whatever the server has sent."""

from __future__ import annotations

from typing import Any

import pytest

from aj.cli.text import columns, plain
from aj.cli.view import View, attempt_line, failure, job_lines, line, list_line, live_line

RUNNING = {
    "job_id": "01a2",
    "status": "running",
    "task": "thumbnails",
    "created_at": "2026-11-29T18:09:51.472Z",
    "eta_s": 12,
    "progress": {"fraction": 0.5, "message": "256 px"},
}


def test_a_job_that_waits_is_one_line() -> None:
    """Its place, and how long it may take."""
    view = View.of({"status": "queued", "position": 3, "eta_s": 130})
    assert line(view) == "queued, position 3, about 2:10 left"


def test_a_job_that_runs_is_one_line() -> None:
    """How far it is, in its own words too."""
    assert line(View.of(RUNNING)) == "running, 50 %, 256 px, about 12 s left"


def test_the_live_line_has_a_bar_and_the_time() -> None:
    """The estimate runs down while nothing is heard, and the time that was waited runs up."""
    drawn = live_line(View.of(RUNNING), waited_s=65, seen_s=2, width=80)
    assert drawn == f"[{'#' * 15}{'-' * 15}] 50 %, 256 px, about 10 s left, 65 s"


def test_without_a_fraction_there_is_no_bar() -> None:
    """Nothing is made up."""
    assert live_line(View.of({"status": "queued", "position": 2}), 7, 0, 80) == "queued, position 2, 7 s"
    assert live_line(View(), 0, 0, 80) == "asking, 0 s"


@pytest.mark.parametrize("message", ["", "256 px", "a long message " * 20, "漢字" * 30])
def test_the_live_line_fits_in_any_window(message: str) -> None:
    """One column too many would break the line, and the next drawing would leave half of it there."""
    view = View.of({**RUNNING, "progress": {"fraction": 0.999, "message": message}})
    assert [width for width in range(1, 90) if columns(live_line(view, 3700, 0, width)) > width] == []


def test_a_narrow_window_keeps_the_figures() -> None:
    """The message is cut before the bar goes."""
    view = View.of({**RUNNING, "progress": {"fraction": 0.5, "message": "a very long message"}})
    assert live_line(view, 5, 0, 46) == "[###---] 50 %, a very l…, about 12 s left, 5 s"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"status": "queued", "position": "3", "eta_s": "soon", "progress": []},
        {"status": "running", "progress": {"fraction": True, "message": 5}},
        {"status": 5, "position": 0.2, "eta_s": None, "progress": {"fraction": float("inf")}},
        {"status": "running", "eta_s": 10**400, "attempt": 10**400},
        {"status": "failed", "error": "none", "callback": 5, "attempt": "x"},
    ],
)
def test_documents_of_other_servers_are_shown_as_far_as_they_go(document: dict[str, Any]) -> None:
    """What is of another type is left out, and nothing fails."""
    view = View.of(document)
    assert (view.position, view.eta_s, view.fraction) == (None, None, None)
    assert live_line(view, 1, 0, 40)
    job_lines(document)


def test_a_fraction_stays_between_nothing_and_all() -> None:
    """A bar has two ends."""
    assert View.of({"progress": {"fraction": 7}}).fraction == 1
    assert View.of({"progress": {"fraction": -1}}).fraction == 0


@pytest.mark.parametrize(("fraction", "said"), [(0, "0 %"), (0.29, "29 %"), (0.9999, "99 %"), (1, "100 %")])
def test_percents_are_cut_off(fraction: float, said: str) -> None:
    """All of it is said when all of it is done."""
    assert line(View.of({"status": "running", "progress": {"fraction": fraction}})) == f"running, {said}"


def test_no_text_of_a_server_steers_the_terminal() -> None:
    """Wherever it stands."""
    evil = "\x1b[2J\n\u202e"
    document = {
        **dict.fromkeys(("job_id", "status", "task", "created_at"), evil),
        "metadata": {evil: evil},
        "progress": {"fraction": 0.5, "message": evil},
        "callback": {"state": evil, "attempts": 1, "last_status": evil},
    }
    failed = {**document, "status": "failed", "error": {"type": evil, "title": evil, "detail": evil}}
    lines = [*job_lines(document), *job_lines(failed), *job_lines({**document, "status": "succeeded", "result": evil})]
    lines += [list_line(document), attempt_line({"at": evil, "status": evil}), live_line(View.of(document), 0, 0, 300)]
    assert [each for each in lines if plain(each) != each] == []


def test_a_job_is_shown_a_line_for_each_thing_that_is_known() -> None:
    """And none for what is not."""
    document = {
        "job_id": "01a2",
        "status": "succeeded",
        "task": "square",
        "metadata": {"order": 17},
        "attempt": 2,
        "callback": {
            "state": "pending",
            "attempts": 1,
            "last_status": 500,
            "next_attempt_at": "2026-11-29T18:10:00.000Z",
        },
        "result": None,
    }
    assert job_lines(document) == [
        "job         01a2",
        "status      succeeded",
        "task        square",
        "attempt     2",
        'metadata    {"order": 17}',
        "webhook     pending, 1 attempt, last answer 500, next at 2026-11-29T18:10:00.000Z",
        "result      null",
    ]


def test_a_failure_is_told_on_one_line() -> None:
    """Its type, by which scripts know it, and the words for people."""
    error = {"type": "task-failed", "title": "The task raised an exception.", "detail": "ValueError"}
    assert failure({"error": error}) == "task-failed: ValueError"
    assert failure({"error": {"type": "lost", "title": "The worker died."}}) == "lost: The worker died."


def test_an_attempt_is_told_with_its_time_and_its_answer() -> None:
    """A word where there was no answer."""
    attempt = {"at": "2026-11-29T18:09:51.472Z", "duration_s": 0.0123, "status": "timeout"}
    assert attempt_line(attempt) == "2026-11-29T18:09:51.472Z   0.012 s  timeout"
    assert attempt_line(None) == ""
