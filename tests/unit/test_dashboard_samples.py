"""The first command that the dashboard shows is one that the API accepts, whatever a task's parameters are."""

from __future__ import annotations

import datetime
import json
import uuid
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import UUID1, UUID3, UUID4, UUID5, AfterValidator, BaseModel, Field, WithJsonSchema

from aj import task
from aj.dashboard.samples import first_submission
from aj.registry import Registry, Task

MOST_BYTES = 65_536


class Colour(Enum):
    RED = "red"


class Album(BaseModel):
    title: Annotated[str, Field(min_length=9)]
    colour: Colour
    next: Album | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(gt=6, lt=8)]


class Dog(BaseModel):
    kind: Literal["dog"]


TYPES: dict[str, Any] = {
    "integer": int,
    "integer, least": Annotated[int, Field(ge=18)],
    "integer, most": Annotated[int, Field(lt=-3)],
    "integer, step": Annotated[int, Field(multiple_of=7, gt=7)],
    "number": float,
    "number, between": Annotated[float, Field(gt=0.1, lt=0.2)],
    "number, most": Annotated[float, Field(lt=-2.5)],
    "decimal": Decimal,
    "text": str,
    "text, long": Annotated[str, Field(min_length=11)],
    "text, short": Annotated[str, Field(max_length=2)],
    "choice": Literal["small", "large"],
    "enum": Colour,
    "either": int | str,
    "maybe": str | None,
    "date": datetime.date,
    "moment": datetime.datetime,
    "time": datetime.time,
    "length": datetime.timedelta,
    "uuid": uuid.UUID,
    "uuid, first": UUID1,
    "uuid, third": UUID3,
    "uuid, fourth": UUID4,
    "uuid, fifth": UUID5,
    "list": list[int],
    "list, some": Annotated[list[Annotated[int, Field(ge=6)]], Field(min_length=2)],
    "pair": tuple[int, str],
    "set": set[str],
    "mapping": dict[str, int],
    "model": Album,
    "models": Annotated[list[Album], Field(min_length=1)],
    "union": Annotated[Cat | Dog, Field(discriminator="kind")],
    "example": Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["EUR"])],
    "anything": Any,
    "boolean": bool,
}


def task_of(hint: Any, name: str = "take") -> Task:
    def take(value: Any) -> None:
        """Takes a value."""

    take.__annotations__["value"] = hint
    marked: Task = vars(task(name=name)(take))["__aj_task__"]
    return marked


@pytest.mark.parametrize("hint", TYPES.values(), ids=TYPES)
def test_the_sample_is_accepted(hint: Any) -> None:
    """By the task's own check of its parameters."""
    one = task_of(hint)
    body = first_of(one)
    assert set(body) == {"value"}
    one.validate(body)


def first_of(*tasks: Task, most_bytes: int = MOST_BYTES) -> Any:
    body = first_submission(Registry(tasks), most_bytes)
    return None if body is None else json.loads(body)


def refuse(value: str) -> str:
    raise RuntimeError(value)


UNMET: dict[str, Any] = {
    "pattern": Annotated[str, Field(pattern="^[A-Z]{3}$")],
    "a rule of the author's own": Annotated[str, AfterValidator(refuse)],
    "examples that are none": Annotated[int, Field(json_schema_extra={"examples": None})],
    "examples by name": Annotated[int, Field(json_schema_extra={"examples": {"a": {"value": 3}}})],
    "a bound beyond all numbers": Annotated[int, Field(ge=10**400, multiple_of=3)],
    "a bound that is text": Annotated[int, WithJsonSchema({"type": "integer", "minimum": "3"})],
    "a choice of nothing": Annotated[int, WithJsonSchema({"anyOf": []})],
    "examples that are a number": Annotated[int, WithJsonSchema({"examples": 3})],
    "half of a surrogate pair": Annotated[str, Field(examples=["\ud800"])],
    "more digits than are read": Annotated[int, Field(examples=[10**5000])],
    "a day long gone": Annotated[datetime.date, Field(lt=datetime.date(1990, 1, 1))],
}


@pytest.mark.parametrize("hint", UNMET.values(), ids=UNMET)
def test_where_no_sample_fits_another_task_is_shown_or_none(hint: Any) -> None:
    """A rule need not stand in a schema, and what stands there may be odd: each task is tried on its own."""
    first, second = task_of(hint), task_of(Annotated[int, Field(ge=9)], "count")
    assert first_of(first, second) == {"task": "count", "value": 9}
    assert first_of(first) is None


def test_a_sample_that_is_longer_than_a_body_may_be_is_none() -> None:
    """It would be answered 413."""
    long = task_of(Annotated[list[Annotated[str, Field(min_length=90)]], Field(min_length=10)])
    assert len(first_of(long)["value"]) == 10
    assert first_of(long, most_bytes=900) is None
    assert first_of(long, task_of(str, "say"), most_bytes=900) == {"task": "say", "value": "text"}
