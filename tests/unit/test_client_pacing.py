"""How long the client waits, and what it takes for an answer that says so."""

from __future__ import annotations

import math

import pytest

from aj import clock
from aj.client.pacing import Deadline, repeat_after_s, retry_after_s

NOW = "Sun, 29 Nov 2026 15:00:00 GMT"
NOW_MS = 1_795_964_400_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("999999999999999999999999", 86_400.0),
        ("Sun, 29 Nov 2026 15:00:30 GMT", 30.0),
        ("Sunday, 29-Nov-26 15:00:30 GMT", 30.0),
        ("Sun Nov 29 15:00:30 2026", 30.0),
        ("Sun, 29 Nov 2026 14:00:00 GMT", 0.0),
        ("Tue, 29 Nov 2099 15:00:00 GMT", 86_400.0),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("1e3", None),
        ("٣", None),
        ("soon", None),
        ("Sun, 99 Nov 2026 15:00:30 GMT", None),
    ],
)
def test_a_retry_after_is_seconds_or_a_date_and_bounded(
    monkeypatch: pytest.MonkeyPatch, text: str, seconds: float | None
) -> None:
    """Both forms that HTTP has, the obsolete dates too; a day at most; what is malformed says nothing."""
    monkeypatch.setattr(clock, "now_ms", lambda: NOW_MS)
    assert retry_after_s({"Retry-After": text}) == seconds
    assert retry_after_s({}) is None


def test_a_date_is_compared_with_the_clock_of_who_sent_it() -> None:
    """Whatever the clock of this host says."""
    assert (
        retry_after_s({"Retry-After": "Sat, 29 Nov 1997 15:00:30 GMT", "Date": "Sat, 29 Nov 1997 15:00:00 GMT"}) == 30
    )


def test_what_the_server_asks_for_is_kept_and_a_little_more() -> None:
    """So that those who were refused together do not come back together."""
    waits = {repeat_after_s(1, 10.0) for _ in range(100)}
    assert len(waits) > 50
    assert min(waits) >= 10
    assert max(waits) <= 11


@pytest.mark.parametrize(("attempt", "most_s"), [(1, 0.1), (2, 0.2), (5, 1.6), (7, 5.0), (10_000, 5.0)])
def test_else_the_wait_doubles_up_to_five_seconds(attempt: int, most_s: float) -> None:
    """By chance between the half and the whole; nothing that asks for 0 makes it less."""
    for asked_s in (None, 0.0):
        waits = [repeat_after_s(attempt, asked_s) for _ in range(100)]
        assert min(waits) >= most_s / 2
        assert max(waits) <= most_s


def test_a_deadline_counts_down_and_stays_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the clock that never steps; without an end it is infinite."""
    now_s = 100.0
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s)
    deadline, endless = Deadline(5.0), Deadline(None)
    assert deadline.left_s() == 5.0
    assert (deadline.sooner(2.0).left_s(), deadline.sooner(9.0).left_s()) == (2.0, 5.0)
    assert (endless.left_s(), endless.sooner(9.0).left_s()) == (math.inf, 9.0)
    now_s = 106.0
    assert deadline.left_s() == 0.0
