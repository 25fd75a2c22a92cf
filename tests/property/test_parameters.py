"""Parameters of any type survive the way from the request into the queue and out of it again."""

# ruff: noqa: PT017 - to be refused is as good an end as any here, and has claims of its own
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pydantic
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from pydantic import Field

from aj import task
from aj.errors import Invalid
from aj.job import Submission, to_json
from aj.registry import Task
from tests.property.hostile import json_values
from tests.support.processes import clean_env


class Colour(Enum):
    RED = "red"
    NONE = 0


class Place(pydantic.BaseModel):
    name: str
    at: tuple[float, float] = (0.0, 0.0)
    inner: Place | None = None


@dataclass
class Parcel:
    grams: int
    labels: dict[str, list[int | str | None]]


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
numbers = st.floats(allow_nan=False, allow_infinity=False)
places: st.SearchStrategy[Place] = st.deferred(
    lambda: st.builds(Place, name=text, at=st.tuples(numbers, numbers), inner=st.none() | places)
)
TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (int, st.integers(-(2**200), 2**200)),
    "float": (float, numbers),
    "bool": (bool, st.booleans()),
    "str": (str, text),
    "none": (int | None, st.none() | st.integers()),
    "union": (int | str | bool | None, st.none() | st.integers() | text | st.booleans()),
    "any": (Any, json_values),
    "list": (list[int], st.lists(st.integers(), max_size=4)),
    "nested": (
        list[dict[str, list[float]]],
        st.lists(st.dictionaries(text, st.lists(numbers, max_size=2), max_size=2)),
    ),
    "tuple": (tuple[int, str], st.tuples(st.integers(), text)),
    "set": (set[str], st.sets(text, max_size=4)),
    "sets": (dict[str, set[frozenset[int]]], st.dictionaries(text, st.sets(st.frozensets(st.integers(), max_size=3)))),
    "literal": (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    "enum": (Colour, st.sampled_from(Colour)),
    "datetime": (
        datetime,
        st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))])),
    ),
    "date": (date, st.dates()),
    "time": (time, st.times()),
    "timedelta": (timedelta, st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6))),
    "decimal": (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    "uuid": (UUID, st.uuids()),
    "bounded": (Annotated[int, Field(ge=1, le=9)], st.integers(1, 9)),
    "model": (Place, places),
    "dataclass": (
        Parcel,
        st.builds(Parcel, st.integers(), st.dictionaries(text, st.lists(st.none() | st.integers() | text, max_size=3))),
    ),
}


def task_with(kind: Any, default: Any = ...) -> Task:
    """A task with one parameter `value` of that type."""

    def function(value: Any) -> None:
        """Never called."""

    function.__annotations__["value"] = kind
    if default is not ...:
        function.__defaults__ = (default,)
    marked: Callable[..., Any] = task(name="given")(function)
    made: Task = marked.__dict__["__aj_task__"]
    return made


@profile(max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("kind", TYPES)
def test_a_parameter_arrives_as_it_was_sent(kind: str, data: st.DataObject) -> None:
    """Validated, kept as JSON, read by a worker: the same value of the same type; once more changes nothing."""
    annotation, values = TYPES[kind]
    value = data.draw(values)
    sent = pydantic.TypeAdapter(annotation).dump_python(value, mode="json")
    given_task = task_with(annotation)
    params = given_task.validate(json.loads(to_json({"value": sent})))
    queued = json.loads(to_json(params))
    arrived = given_task.arguments(queued)["value"]
    assert arrived == value
    assert type(arrived) is type(value)
    assert to_json(given_task.validate(queued)) == to_json(params)


@profile(max_examples=25)
@given(value=json_values)
@pytest.mark.parametrize("kind", TYPES)
def test_any_json_value_is_a_parameter_or_refused(kind: str, value: Any) -> None:
    """What is accepted for a type can be kept and read; what is not is refused by name, and nothing else happens."""
    given_task = task_with(TYPES[kind][0])
    try:
        params = given_task.validate({"value": value})
    except Invalid as refused:
        assert refused.errors
        assert all(each.pointer.startswith("#/value") for each in refused.errors)
        return
    given_task.arguments(json.loads(to_json(params)))


@given(value=st.integers(-(2**53), 2**53))
def test_what_validates_to_the_same_has_one_fingerprint(value: int) -> None:
    """`5` and `5.0` are one float, and a default that is left out is the default."""
    given_task = task_with(float, 5.0)
    prints = {Submission("given", given_task.validate({"value": each})).fingerprint for each in (value, float(value))}
    assert len(prints) == 1
    left_out, said = given_task.validate({}), given_task.validate({"value": 5})
    assert Submission("given", left_out).fingerprint == Submission("given", said).fingerprint


PRINT = """
from aj import task
from aj.job import Submission

@task(name="tagged")
def tagged(tags: set[str]) -> None: ...

members = {"tags": ["red", "green", "blue", "black"]}
print(Submission("tagged", vars(tagged)["__aj_task__"].validate(members)).fingerprint)
"""


def test_one_payload_has_one_fingerprint_in_every_process() -> None:
    """The order of a set depends on the process; a replay that another process answers must not be a mismatch."""
    prints = {
        subprocess.run(
            [sys.executable, "-c", PRINT], env=clean_env({"PYTHONHASHSEED": seed}), capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(prints) == 1
