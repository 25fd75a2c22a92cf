"""Parameters of richer types: what a task gets is what was validated, whatever lies between."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict  # Python's own will do from 3.12

from aj import task
from aj.registry import Task


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Line(pydantic.BaseModel):
    sku: str
    count: int = 1
    colour: Colour = Colour.RED


class Order(pydantic.BaseModel):
    lines: list[Line]
    ship_on: datetime.date | None = None


class Aliased(pydantic.BaseModel):
    inner: int = pydantic.Field(alias="outer-name")


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Shape(TypedDict):
    corners: list[tuple[int, int]]


IDENT = "12345678-1234-5678-1234-567812345678"
AT = datetime.datetime(2026, 11, 29, 15, 0, 0, 123000, datetime.UTC)

# Annotation, the caller's JSON, the argument that the task gets.
ROWS: list[tuple[Any, Any, Any]] = [
    (int, 5, 5),
    (float, 1, 1.0),
    (float, 0.1, 0.1),
    (bool, False, False),
    (str, "", ""),
    (str, "grün ✓ 😀 \0 \u2028", "grün ✓ 😀 \0 \u2028"),
    (int | None, None, None),
    (int | str, "5", "5"),
    (int | str, 5, 5),
    (float | int, 5, 5),
    (Any, {"a": [1, 1.0, None, True, "x"]}, {"a": [1, 1.0, None, True, "x"]}),
    (list[int], [], []),
    (list[int], [3, 1, 2], [3, 1, 2]),
    (list[list[str]], [["a"], []], [["a"], []]),
    (dict[str, list[int]], {"é/~": [1]}, {"é/~": [1]}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
    (set[int], [2, 1, 2], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (Literal["fast", "slow"], "slow", "slow"),
    (Colour, "blue", Colour.BLUE),
    (Size, 2, Size.LARGE),
    (list[Colour], ["red", "blue"], [Colour.RED, Colour.BLUE]),
    (datetime.datetime, "2026-11-29T15:00:00.123Z", AT),
    (datetime.datetime, "2026-11-29T16:00:00.123+01:00", AT),
    (datetime.date, "2026-11-29", datetime.date(2026, 11, 29)),
    (datetime.time, "15:00:01", datetime.time(15, 0, 1)),
    (datetime.timedelta, "PT1H30M", datetime.timedelta(hours=1.5)),
    (uuid.UUID, IDENT, uuid.UUID(IDENT)),
    (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    (pathlib.Path, "/a/b", pathlib.Path("/a/b")),
    (bytes, "é", "é".encode()),
    (Line, {"sku": "a"}, Line(sku="a")),
    (Line, {"sku": "a", "count": 2, "colour": "blue"}, Line(sku="a", count=2, colour=Colour.BLUE)),
    (
        Order,
        {"lines": [{"sku": "a"}, {"sku": "b", "count": 3}], "ship_on": "2026-11-29"},
        Order(lines=[Line(sku="a"), Line(sku="b", count=3)], ship_on=datetime.date(2026, 11, 29)),
    ),
    (Order | None, None, None),
    (dict[str, Order], {"x": {"lines": []}}, {"x": Order(lines=[])}),
    (Aliased, {"outer-name": 7}, Aliased(**{"outer-name": 7})),
    (Point, {"x": 1}, Point(1)),
    (list[Point], [{"x": 1, "y": 2}], [Point(1, 2)]),
    (Shape, {"corners": [[0, 0], [1, 2]]}, {"corners": [(0, 0), (1, 2)]}),
    (Annotated[int, pydantic.Field(gt=0)], 1, 1),
]


def taking(hint: Any) -> Task:
    """A task with one parameter `x` of this type."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    return made(function)


def made(function: Callable[..., Any]) -> Task:
    marked: Task = vars(task(function))["__aj_task__"]
    return marked


@pytest.mark.parametrize(("hint", "given", "argument"), ROWS)
def test_a_parameter_survives_the_queue_with_its_type(hint: Any, given: Any, argument: Any) -> None:
    """Validated, written as JSON, read by the worker."""
    of = taking(hint)
    queued = json.loads(json.dumps(of.validate({"x": given}), allow_nan=False))
    got = of.arguments(queued)["x"]
    assert got == argument
    assert type(got) is type(argument)


@pytest.mark.parametrize(("hint", "given", "argument"), ROWS)
def test_what_was_validated_is_valid_again_and_the_same(hint: Any, given: Any, argument: Any) -> None:
    """So that one payload has one fingerprint, however often it goes round."""
    of = taking(hint)
    once = of.validate({"x": given})
    assert of.validate(once) == once


def awkward(  # noqa: PLR0917 - the names are the point
    json: int,
    copy: int,
    schema: int,
    dict: int,
    model_dump: int,
    model_config: int,
    model_fields: int,
    self: int,
    cls: int,
    _private: int,
    __dunder: int,
    p0: int,
    p1: int,
    data: int,
    warnings: int = 15,
) -> int:
    return json + copy + schema + dict + model_dump + model_config + model_fields + self + cls + _private + warnings


def test_parameters_may_have_any_other_name() -> None:
    """Names of methods of a model, or of fields that we give ourselves, mean nothing here."""
    of = made(awkward)
    names = list(awkward.__annotations__)[:-2]
    given = {name: number for number, name in enumerate(names)}
    assert of.validate(given) == {**given, "warnings": 15}
    assert of.arguments(of.validate(given)) == {**given, "warnings": 15}
    assert of.function(**of.arguments(given)) == sum(range(10)) + 15


def test_a_default_is_filled_in_when_the_job_is_submitted() -> None:
    """A later default does not change a job that waits."""

    def function(n: int, tags: list[str] = ["a"], on: datetime.date = datetime.date(2026, 1, 2)) -> None: ...  # noqa: B006

    assert made(function).validate({"n": 1}) == {"n": 1, "tags": ["a"], "on": "2026-01-02"}


def test_a_default_left_out_is_the_default_given() -> None:
    """The same parameters, so the same fingerprint."""

    def function(n: int, unit: str = "kg") -> None: ...

    of = made(function)
    assert of.validate({"n": 1}) == of.validate({"unit": "kg", "n": 1})


def test_two_runs_never_share_a_default() -> None:
    """A list that one run appends to is not the next one's."""

    def function(tags: list[str] = []) -> None: ...  # noqa: B006

    of = made(function)
    of.arguments({})["tags"].append("x")
    assert of.arguments({})["tags"] == []


def test_a_task_without_parameters_takes_none() -> None:
    """An empty object, and then no argument."""

    def function() -> None: ...

    of = made(function)
    assert of.validate({}) == {}
    assert of.arguments({}) == {}


@pytest.mark.parametrize("payload", [{}, {"n": "5"}, {"n": 5, "gone": 1}, {"m": 5}, {"n": None}, {"n": [1]}])
def test_a_payload_of_an_older_form_is_a_value_error(payload: dict[str, Any]) -> None:
    """The worker makes `task-unavailable` of it."""

    def function(n: int) -> None: ...

    with pytest.raises(ValueError):
        made(function).arguments(payload)


def test_a_payload_from_before_a_parameter_with_a_default_still_fits() -> None:
    """Adding one is a safe change."""

    def function(n: int, added: str = "new") -> None: ...

    assert made(function).arguments({"n": 1}) == {"n": 1, "added": "new"}
