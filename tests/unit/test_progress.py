"""Progress reports: how often, what of them, and that outside a worker they are nothing."""

from __future__ import annotations

import contextvars
import decimal
import fractions
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import aj.progress
from aj import report_progress
from aj.progress import LONGEST_MESSAGE, SHORTEST_INTERVAL_S, reporting_to
from tests.support.execution import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    made.now_s = 50.0
    monkeypatch.setattr(aj.progress, "monotonic_s", made)
    return made


@pytest.fixture
def sent(clock: Clock) -> Iterator[list[dict[str, Any]]]:
    """What a task's reports become while the test lasts."""
    got: list[dict[str, Any]] = []
    with reporting_to(lambda progress: got.append(json.loads(progress))):
        yield got


def test_a_report_is_json(clock: Clock) -> None:
    """With the message where there is one."""
    got: list[bytes] = []
    with reporting_to(got.append):
        report_progress(0.25)
        clock.now_s += 1
        report_progress(0.5, "grün ✓")
    assert got == [b'{"fraction": 0.25}', '{"fraction": 0.5, "message": "grün ✓"}'.encode()]


def test_the_first_report_goes_out_at_once(sent: list[dict[str, Any]]) -> None:
    """Also where it says nothing yet."""
    report_progress(0)
    assert sent == [{"fraction": 0.0}]


def test_at_most_four_reports_a_second_go_out(clock: Clock, sent: list[dict[str, Any]]) -> None:
    """Of a thousand in ten seconds, forty; those between are dropped."""
    for step in range(1000):
        clock.now_s = 50.0 + step / 100
        report_progress(step / 1000)
    assert len(sent) == 40


def test_the_interval_is_counted_from_the_last_one_sent(clock: Clock, sent: list[dict[str, Any]]) -> None:
    """Reports that were dropped do not put the next one off."""
    report_progress(0.1)
    clock.now_s = 50.0 + SHORTEST_INTERVAL_S - 0.001
    report_progress(0.2)
    clock.now_s = 50.0 + SHORTEST_INTERVAL_S
    report_progress(0.3)
    assert [each["fraction"] for each in sent] == [0.1, 0.3]


def test_the_report_that_says_1_always_goes_out(clock: Clock, sent: list[dict[str, Any]]) -> None:
    """The last one is the one that is read for long."""
    report_progress(0.99)
    report_progress(0.999)
    report_progress(1, "done")
    assert sent == [{"fraction": 0.99}, {"fraction": 1.0, "message": "done"}]


def test_a_fraction_may_go_back(clock: Clock, sent: list[dict[str, Any]]) -> None:
    """A task may learn that there is more to do."""
    report_progress(0.9)
    clock.now_s += 1
    report_progress(0.1)
    assert [each["fraction"] for each in sent] == [0.9, 0.1]


def test_each_job_has_a_clock_of_its_own(clock: Clock) -> None:
    """The next job's first report is not held back by this one's last."""
    got: list[bytes] = []
    for _ in range(3):
        with reporting_to(got.append):
            report_progress(0.5)
    assert len(got) == 3


@pytest.mark.parametrize(
    "fraction", [float("nan"), -0.1, 1.1, -1e-300, 1.0000000001, 2, -1, float("inf"), 100, 10**400]
)
def test_a_fraction_outside_0_to_1_is_a_value_error(sent: list[dict[str, Any]], fraction: float) -> None:
    """It names the value; nothing goes out."""
    with pytest.raises(ValueError, match="it must be from 0 to 1"):
        report_progress(fraction)
    assert sent == []


@pytest.mark.parametrize("fraction", [float("nan"), -0.1, 1.1])
def test_a_wrong_fraction_is_wrong_outside_a_worker_too(fraction: float) -> None:
    """So that a test of the task finds it."""
    with pytest.raises(ValueError, match="it must be from 0 to 1"):
        report_progress(fraction)


@pytest.mark.parametrize("fraction", ["0.5", None, [], 1j])
def test_what_is_no_number_is_a_type_error(fraction: Any) -> None:
    """As anywhere in Python."""
    with pytest.raises(TypeError):
        report_progress(fraction)


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [(0, 0.0), (1, 1.0), (-0.0, 0.0), (True, 1.0), (False, 0.0), (fractions.Fraction(1, 4), 0.25), (5e-324, 5e-324)],
)
def test_a_fraction_is_shown_as_a_float(sent: list[dict[str, Any]], fraction: float, shown: float) -> None:
    """Whatever number it was; Python takes a truth for one, and so does this."""
    report_progress(fraction)
    assert sent == [{"fraction": shown}]
    assert type(sent[0]["fraction"]) is float


def test_a_decimal_is_a_number(sent: list[dict[str, Any]]) -> None:
    """Shown as a float as well."""
    report_progress(decimal.Decimal("0.5"))  # type: ignore[arg-type]
    assert sent == [{"fraction": 0.5}]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("", ""),
        ("x" * LONGEST_MESSAGE, "x" * LONGEST_MESSAGE),
        ("x" * (LONGEST_MESSAGE + 1), "x" * LONGEST_MESSAGE),
        ("é" * 10**6, "é" * LONGEST_MESSAGE),
        ("😀" * 300, "😀" * LONGEST_MESSAGE),
        ("half \ud800", "half ?"),
        ("\ud83d\ude00", "??"),
        ("\0\n\x1b[31m\u2028", "\0\n\x1b[31m\u2028"),
        ('", "fraction": 2, "x": "', '", "fraction": 2, "x": "'),
        ("<script>", "<script>"),
        (5, "5"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_a_message_is_text_of_200_characters_at_most(sent: list[dict[str, Any]], message: Any, shown: str) -> None:
    """It cannot break the JSON, and what UTF-8 cannot hold is replaced."""
    report_progress(0.5, message)
    assert sent == [{"fraction": 0.5, "message": shown}]


def test_outside_a_worker_nothing_happens() -> None:
    """A task stays a plain function."""
    report_progress(0.5, "x")


def test_after_the_task_nothing_happens(clock: Clock) -> None:
    """Nor after one that failed."""
    got: list[bytes] = []
    with pytest.raises(KeyError), reporting_to(got.append):
        raise KeyError
    report_progress(1)
    assert got == []


def test_reports_inside_reports_go_to_the_inner_one(clock: Clock) -> None:
    """And to the outer one again afterwards."""
    outer: list[bytes] = []
    inner: list[bytes] = []
    with reporting_to(outer.append):
        with reporting_to(inner.append):
            report_progress(0.1)
        report_progress(0.2)
    assert (inner, outer) == ([b'{"fraction": 0.1}'], [b'{"fraction": 0.2}'])


def test_a_thread_reports_where_it_is_given_the_context(clock: Clock, sent: list[dict[str, Any]]) -> None:
    """A bare thread of the task's has none, and its reports go nowhere."""
    bare = threading.Thread(target=report_progress, args=(0.1,))
    given = threading.Thread(target=contextvars.copy_context().run, args=(report_progress, 0.2))
    for thread in (bare, given):
        thread.start()
        thread.join()
    assert sent == [{"fraction": 0.2}]


def test_the_last_report_is_sent_at_the_end_where_it_was_held_back() -> None:
    """A job that ends within the limit of rate would else show its first report for ever."""
    sent: list[bytes] = []
    with reporting_to(sent.append):
        for step in range(10):
            report_progress(step / 10)
    assert [json.loads(each)["fraction"] for each in sent] == [0.0, 0.9]


def test_a_thread_that_is_left_behind_reports_nothing(clock: Clock) -> None:
    """It has the context of a task that has ended."""
    sent: list[bytes] = []
    with reporting_to(sent.append):
        context = contextvars.copy_context()
    context.run(report_progress, 1)
    assert sent == []
