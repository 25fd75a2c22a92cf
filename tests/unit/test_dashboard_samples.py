"""The first command that the dashboard shows is one that the API accepts, whatever a task's parameters are."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from aj import task
from aj.dashboard.samples import first_submission
from aj.registry import Registry, Task


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
    body = first_submission(Registry([one]))
    assert set(body) == {"value"}
    one.validate(body)


def refuse(value: str) -> str:
    raise RuntimeError(value)


@pytest.mark.parametrize("hint", [Annotated[str, Field(pattern="^[A-Z]{3}$")], Annotated[str, AfterValidator(refuse)]])
def test_where_no_sample_fits_another_task_is_shown(hint: Any) -> None:
    """A pattern, or a rule of the author's own, is in no schema that a sample could be made from."""
    first, second = task_of(hint), task_of(Annotated[int, Field(ge=9)], "count")
    assert first_submission(Registry([first, second])) == {"task": "count", "value": 9}
    assert first_submission(Registry([first])) == {"value": "text"}
