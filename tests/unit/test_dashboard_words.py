"""How the dashboard writes times, lengths, sizes, JSON and plots."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from aj import clock
from aj.dashboard.plot import HEIGHT, plot
from aj.dashboard.timeline import timeline, tried
from aj.dashboard.words import MOST_SHOWN, ago, length, parsed, readable_json, size, took, without_query
from aj.job import Callback, CallbackState, Job, Outcome, Status
from aj.store import Details, Minute

NOW_MS = 1_795_964_400_123
S, MIN, H, D = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("passed_ms", "text"),
    [
        *((0, "0 s"), (999, "0 s"), (59_999, "59 s"), (MIN, "1 min"), (H - 1, "59 min"), (H, "1 h"), (47 * H, "47 h")),
        *((2 * D, "2 d"), (400 * D, "400 d"), (-5, "0 s")),
    ],
)
def test_a_length_has_its_largest_whole_unit(passed_ms: int, text: str) -> None:
    """Never longer than it was; what is not over yet is nothing."""
    assert length(passed_ms) == text


@pytest.mark.parametrize(
    ("passed_ms", "text"),
    [(0, "now"), (999, "now"), (-999, "now"), (1000, "1 s ago"), (-1000, "in 1 s"), (3 * MIN, "3 min ago")],
)
def test_a_time_is_told_as_seen_from_now(passed_ms: int, text: str) -> None:
    """Before and after."""
    assert ago(NOW_MS - passed_ms, NOW_MS) == text


@pytest.mark.parametrize(
    ("passed_ms", "text"),
    [
        *((0.4, "under 1 ms"), (6, "6 ms"), (999, "999 ms"), (2340, "2.34 s"), (12_345, "12.3 s")),
        *((192 * S, "3 min 12 s"), (2 * H + 5 * MIN, "2 h 5 min"), (-3, "under 1 ms")),
    ],
)
def test_what_is_over_is_told_to_three_digits(passed_ms: float, text: str) -> None:
    """Or so."""
    assert took(passed_ms) == text


def test_a_time_is_read_as_it_was_written() -> None:
    """The log of attempts holds times as text."""
    assert clock.from_rfc3339(clock.rfc3339(NOW_MS)) == NOW_MS


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (1718, "1718 bytes"), (20_480, "20.5 kB"), (10**6, "1.0 MB")]
)
def test_a_size_is_told_in_its_unit(count: int, text: str) -> None:
    """Powers of ten."""
    assert size(count) == text


def test_json_is_laid_out_and_stays_what_it_is() -> None:
    """What fits a line stands on one."""
    short: dict[str, Any] = {"n": 5, "sizes": [1, 2]}
    long: dict[str, Any] = {"names": ["x" * 30, "ü" * 60], "none": None, "inner": {"a": {}, "b": []}}
    assert readable_json(json.dumps(short).encode()) == ('{"n": 5, "sizes": [1, 2]}', False)
    text, is_cut = readable_json(json.dumps(long).encode())
    assert json.loads(text) == long
    assert len(text.splitlines()) > 5
    assert not is_cut


@pytest.mark.parametrize("document", [b"[" * 5000, b"{", b"\xff", b'"\\ud800"', b"[" * 400 + b"]" * 400])
def test_whatever_stands_in_the_store_can_be_shown(document: bytes) -> None:
    """Also what is no JSON, or nested deeper than anybody reads."""
    assert readable_json(document)[0]
    assert isinstance(parsed(document), dict)


def test_what_is_long_is_cut() -> None:
    """Before it is parsed, and between two characters."""
    text, is_cut = readable_json(b'"' + "ü".encode() * MOST_SHOWN + b'"')
    assert is_cut
    assert len(text) < MOST_SHOWN


def test_nothing_turns_or_hides_what_is_read() -> None:
    """Marks of direction, line ends and control characters are escaped, and the JSON stays what it is."""
    hostile = {"a": "\u202eevil\u2066x\u2069\u200f", "b": "\u2028\x9b\x7f\ufeff", "ü": "✓"}
    text, _ = readable_json(json.dumps(hostile, ensure_ascii=False).encode())
    assert json.loads(text) == hostile
    assert all(each == "\n" or each.isprintable() for each in text)
    assert "ü" in text


def test_a_query_is_never_shown() -> None:
    """It may hold a secret."""
    assert without_query("https://a.example/hook?token=x#y") == "https://a.example/hook?…"
    assert without_query("https://a.example/hook") == "https://a.example/hook"


# -- plots ---------------------------------------------------------------------------------------------------


def test_a_plot_has_a_bar_for_each_minute_in_which_something_happened() -> None:
    """The highest is as high as the plot, the least can be seen, and the words tell the same."""
    minutes = [Minute(at * MIN, count, 0) for at, count in enumerate((0, 1000, 0, 1))]
    made = plot("Succeeded", "jobs succeeded", minutes, [each.succeeded for each in minutes])
    assert [bar.height for bar in made.bars] == [HEIGHT, 2.0]
    assert [bar.y + bar.height for bar in made.bars] == [HEIGHT, HEIGHT]
    assert made.bars[0].says == "00:01 UTC: 1000"
    assert made.words == "1001 jobs succeeded in the last hour, at most 1000 in a minute, at 00:01 UTC."


def test_a_plot_of_nothing_says_so() -> None:
    """And has no bar."""
    made = plot("Failed", "jobs failed", [Minute(0, 0, 0)], [0])
    assert (made.bars, made.most, made.words) == ([], 0, "0 jobs failed in the last hour.")


# -- what happened -------------------------------------------------------------------------------------------

DETAILS = Details(None, None, None, None, False, True, [])
JOB = Job("0", Status.QUEUED, "square", created_ms=NOW_MS)


def test_a_timeline_is_in_order_and_whole() -> None:
    """From the submission over the attempts of the webhook to what is to come."""
    log = [{"at": clock.rfc3339(NOW_MS + 40), "status": 503, "duration_s": 0.01}]
    owed = Callback(CallbackState.PENDING, 1, 503, NOW_MS + 5000)
    job = replace(JOB, started_ms=NOW_MS + 20, attempt=1, callback=owed).ended(Outcome.timed_out(1), NOW_MS + 30, 60)
    events = timeline(job, replace(DETAILS, attempts=log), NOW_MS + 50)
    assert [(event.title, event.text) for event in events] == [
        ("Submitted", ""),
        ("Attempt 1 started", "after 20 ms of waiting"),
        ("Failed", "timed-out, after 10 ms"),
        ("Webhook attempt 1", "HTTP 503, after 10 ms"),
        ("Webhook is due", "attempt 2"),
        ("Expires", ""),
    ]


def test_a_delay_before_another_attempt_is_to_come() -> None:
    """The job waits, and nobody can take it before."""
    assert timeline(replace(JOB, attempt=1), DETAILS, NOW_MS, NOW_MS + 5000)[-1].text == "attempt 2"


@pytest.mark.parametrize("entry", [{}, {"at": "x", "duration_s": 1}, {"at": None, "duration_s": None, "status": "x"}])
def test_an_attempt_that_cannot_be_read_is_passed_over(entry: dict[str, object]) -> None:
    """It may be of another version."""
    assert tried([entry]) == []
