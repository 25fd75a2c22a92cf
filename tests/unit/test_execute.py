"""Every way in which a call can end is one outcome, and what a caller may read of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import aj.execute
from aj import TaskError, report_progress, task
from aj.execute import DEEPEST_RESULT, LONGEST_DETAIL, Limits, Refused, execute, prepare
from aj.job import ErrorType, Outcome, Status
from aj.registry import Registry
from tests.support.execution import Clock, error_of, raising

LIMITS = Limits(timeout_s=5, max_result_bytes=100)
NO_FORM = "has no form in JSON, so the task has to give it one, such as text"
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(aj.execute, "monotonic_s", made)
    return made


def run(call: Callable[[], Any], deadline_s: float = 1005.0, limits: Limits = LIMITS) -> Outcome:
    return execute(call, limits, deadline_s, lambda progress: None, "job 1")


# -- what a task gives back --------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, 1.5, "grün ✓", {"a": [1, None]}, -0.0, 10**50])
def test_a_return_value_is_the_result(value: Any) -> None:
    """As JSON, whatever it is."""
    outcome = run(lambda: value)
    assert outcome.status is Status.SUCCEEDED
    assert json.loads(outcome.body) == value
    assert type(json.loads(outcome.body)) is type(value)


def test_a_tuple_is_a_list() -> None:
    """As JSON has it."""
    assert run(lambda: (1, (2,))).body == b"[1, [2]]"


def circle() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


def nested(depth: int, *kinds: str) -> Any:
    """A value of lists, tuples and objects in each other, `depth` of them, their kinds in turn."""
    made: Any = None
    for at in range(depth):
        kind = kinds[at % len(kinds)]
        made = {"a": made} if kind == "object" else (made,) if kind == "tuple" else [made]
    return made


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda: float("nan"), "ValueError"),
        (lambda: {"a": [float("inf")]}, "ValueError"),
        (object, "TypeError: object " + NO_FORM),
        (
            lambda: [datetime(2026, 1, 1, tzinfo=UTC).date()],
            "TypeError: date " + NO_FORM,
        ),
        (lambda: {1, 2}, "TypeError: set " + NO_FORM),
        (lambda: {(1, 2): 3}, "TypeError"),
        (lambda: "\ud800", "UnicodeEncodeError"),
        (lambda: {"\udfff": 1}, "UnicodeEncodeError"),
        (lambda: 10**5000, "ValueError"),
        (circle, "ValueError"),
        (deep, "RecursionError"),
    ],
)
def test_what_is_no_json_is_an_invalid_result(call: Callable[[], Any], cause: str) -> None:
    """With the class of the cause and the type of the value, and nothing else of it."""
    kind, detail = error_of(run(call))
    assert kind == ErrorType.RESULT_INVALID
    assert detail == f"The return value cannot be written as JSON ({cause})."


@pytest.mark.parametrize("kinds", [("list",), ("tuple",), ("object",), ("object", "list")])
@pytest.mark.parametrize("depth", [300, DEEPEST_RESULT])
def test_a_deep_result_is_a_result(kinds: tuple[str, ...], depth: int) -> None:
    """Up to a depth that is the same for every version of Python."""
    outcome = run(lambda: nested(depth, *kinds), limits=Limits(5, 10_000))
    assert outcome.status is Status.SUCCEEDED
    assert outcome.body.count(b"[") + outcome.body.count(b"{") == depth


@pytest.mark.parametrize("kinds", [("list",), ("tuple",), ("object",), ("object", "list")])
@pytest.mark.parametrize("depth", [DEEPEST_RESULT + 1, 500, 900, 2000])
def test_a_result_that_is_nested_too_deep_is_invalid(kinds: tuple[str, ...], depth: int) -> None:
    """The task has raised nothing, so it has not failed."""
    kind, _ = error_of(run(lambda: nested(depth, *kinds), limits=Limits(5, 10_000)))
    assert kind == ErrorType.RESULT_INVALID


@pytest.mark.parametrize("character", ["x", "é", "😀", '"'])
def test_the_limit_of_a_result_is_exact(character: str) -> None:
    """Counted in bytes of JSON, quotes and escapes too."""
    size = len(json.dumps(character, ensure_ascii=False).encode()) - 2
    exact = character * 40
    limit = 40 * size + 2
    assert run(lambda: exact, limits=Limits(5, limit)).status is Status.SUCCEEDED
    kind, detail = error_of(run(lambda: exact, limits=Limits(5, limit - 1)))
    assert kind == ErrorType.RESULT_TOO_LARGE
    assert detail == f"The result is {limit} bytes of JSON; the limit is {limit - 1}."


# -- what a task raises ------------------------------------------------------------------------------------


class PaymentRefused(TaskError):
    """A task's own public error."""


class Wordless(TaskError):
    """Its text breaks."""

    def __str__(self) -> str:
        raise KeyError(SECRET)


class NotEvenText(TaskError):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value] # noqa: PLE0307


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (TaskError("no such customer"), "TaskError: no such customer"),
        (PaymentRefused("card 42 expired"), "PaymentRefused: card 42 expired"),
        (TaskError("grün ✓\nline two"), "TaskError: grün ✓\nline two"),
        (TaskError("half \ud800 pair"), "TaskError: half ? pair"),
        (TaskError(), "TaskError: "),
        (TaskError, "TaskError: "),
        (Wordless(SECRET), "Wordless"),
        (NotEvenText(SECRET), "NotEvenText"),
    ],
)
def test_the_text_of_a_public_error_is_shown(error: BaseException, detail: str) -> None:
    """What JSON cannot hold is replaced; a text that breaks is left out."""
    assert error_of(run(raising(error))) == (ErrorType.TASK_FAILED, detail)


def named(name: str) -> type[Exception]:
    return type(name, (Exception,), {})


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        KeyError(SECRET),
        OSError(5, SECRET, SECRET),
        UnicodeEncodeError("utf-8", SECRET, 0, 1, SECRET),
        ExceptionGroup(SECRET, [ValueError(SECRET)]),
        ExceptionGroup(SECRET, [TaskError(SECRET)]),
        SystemExit(SECRET),
        SystemExit(0),
        KeyboardInterrupt(SECRET),
        GeneratorExit(SECRET),
        StopIteration(SECRET),
        BaseException(SECRET),
        MemoryError(SECRET),
        RecursionError(SECRET),
        AssertionError(SECRET),
    ],
)
def test_of_every_other_exception_only_the_class_is_shown(error: BaseException) -> None:
    """Also of those that are no `Exception`, and of leaving with code 0."""
    outcome = run(raising(error))
    assert error_of(outcome) == (ErrorType.TASK_FAILED, type(error).__name__)
    assert SECRET.encode() not in outcome.body


def test_a_cause_and_a_note_are_not_shown() -> None:
    """Of a public error the text alone is public."""

    def call() -> None:
        try:
            raise ValueError(SECRET)
        except ValueError as cause:
            error = TaskError("shown")
            error.add_note(SECRET)
            raise error from cause

    assert error_of(run(call)) == (ErrorType.TASK_FAILED, "TaskError: shown")


@pytest.mark.parametrize("error", [TaskError("x" * 5000), named("N" * 5000)(SECRET), named("Fehlerü" * 500)()])
def test_a_detail_has_an_end(error: Exception) -> None:
    """However long the text or the name of the class."""
    _, detail = error_of(run(raising(error)))
    assert len(detail) == LONGEST_DETAIL
    assert SECRET not in detail


def test_what_went_wrong_stands_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Traceback and all: it is the operator's."""
    with caplog.at_level(logging.ERROR, "aj.execute"):
        run(raising(ValueError("for the operator")))
    assert "ValueError: for the operator" in caplog.text
    assert "Traceback" in caplog.text


# -- progress ----------------------------------------------------------------------------------------------


def test_reports_go_out_while_the_call_lasts() -> None:
    """And not before or after it."""
    sent: list[bytes] = []
    report_progress(1)
    outcome = execute(lambda: report_progress(1, "done"), LIMITS, 1005.0, sent.append, "job 1")
    report_progress(1)
    assert sent == [b'{"fraction": 1.0, "message": "done"}']
    assert outcome.status is Status.SUCCEEDED


def test_a_wrong_fraction_fails_the_task() -> None:
    """Its author learns of it, in the log."""
    assert error_of(run(lambda: report_progress(2))) == (ErrorType.TASK_FAILED, "ValueError")


# -- finding the call --------------------------------------------------------------------------------------


@task
def double(n: int, word: str = "a") -> str:
    return word * n


REGISTRY = Registry([vars(double)["__aj_task__"]])


def test_a_job_is_a_call_of_its_task() -> None:
    """With the parameters as keyword arguments."""
    assert prepare(REGISTRY, "double", {"n": 2, "word": "b"})() == "bb"


@pytest.mark.parametrize("name", ["", "Double", "os.system", "aj.tasks.square", "\ud800", "x" * 300, None])
def test_an_unknown_task_is_unavailable(name: str | None) -> None:
    """As when the worker is older than the API; no name is ever imported."""
    with pytest.raises(Refused) as caught:
        prepare(REGISTRY, name, {"n": 1})
    kind, detail = error_of(caught.value.outcome)
    assert kind == ErrorType.TASK_UNAVAILABLE
    assert "has to be restarted" in detail


@pytest.mark.parametrize("params", [{}, {"n": "5"}, {"n": 1, "gone": SECRET}, {"n": SECRET}, {"n": float("nan")}])
def test_parameters_that_do_not_fit_are_unavailable(params: dict[str, Any]) -> None:
    """As when the task has changed since; no parameter is shown."""
    with pytest.raises(Refused) as caught:
        prepare(REGISTRY, "double", params)
    kind, detail = error_of(caught.value.outcome)
    assert kind == ErrorType.TASK_UNAVAILABLE
    assert "'double'" in detail
    assert SECRET not in detail
    assert caught.value.__suppress_context__


def test_a_refusal_inside_a_run_keeps_its_outcome() -> None:
    """It carries it."""
    assert run(raising(Refused(ErrorType.LOST, "d"))) == Outcome.failed(ErrorType.LOST, "d")


def test_the_log_says_whose_end_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """Several workers write to one log, and a traceback alone names no job."""

    def broken() -> None:
        raise ValueError

    run(broken)
    assert [record.getMessage() for record in caplog.records] == ["job 1: the task failed"]
