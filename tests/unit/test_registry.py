"""Tasks: what is refused at import, what a submission must fit, and how a process finds its tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pydantic
import pytest

from aj import task
from aj.errors import Invalid, SettingsError
from aj.registry import RESERVED, Task


def made(function: Callable[..., Any], **options: Any) -> Task:
    """The task that the decorator makes of `function`."""
    marked: Task = vars(task(**options)(function))["__aj_task__"]
    return marked


def refusals(of: Task, members: dict[str, Any]) -> dict[str, str]:
    """The details of a refusal, by pointer."""
    with pytest.raises(Invalid) as caught:
        of.validate(members)
    return {each.pointer: each.detail for each in caught.value.errors}


def square(n: int) -> int:
    return n * n


SQUARE = made(square)


# -- the decorator -----------------------------------------------------------------------------------------


def test_a_decorated_function_stays_the_function() -> None:
    """The same object, callable as before, with parentheses or without."""

    def plain(n: int) -> int:
        return n + 1

    assert task(plain) is plain
    assert task(timeout_s=5)(plain) is plain
    assert plain(1) == 2


def test_a_task_is_named_by_its_function_unless_told_otherwise() -> None:
    """The name goes over the wire, so it need not be the function's."""
    assert SQUARE.name == "square"
    assert made(square, name="math.square-2_x").name == "math.square-2_x"


def test_a_task_keeps_its_time_and_its_queue() -> None:
    """None means the deployment's."""
    assert (SQUARE.timeout_s, SQUARE.queue) == (None, None)
    given = made(square, timeout_s=1, queue="q:slow")
    assert (given.timeout_s, given.queue) == (1, "q:slow")


@pytest.mark.parametrize("name", [" ", "a b", "a/b", "é", "a\n", "a" * 101, "<lambda>", "a:b", "*"])
def test_a_name_that_would_need_quoting_is_refused(name: str) -> None:
    """Names stand in documents, logs and keys."""
    with pytest.raises(SettingsError, match="must be 1 to 100 letters"):
        made(square, name=name)


@pytest.mark.parametrize("option", ["timeout_s", "result_ttl_s"])
@pytest.mark.parametrize("seconds", [0, -1, 1.5, "5", True, False])
def test_a_time_that_is_no_whole_number_of_seconds_is_refused(option: str, seconds: Any) -> None:
    """True is no second."""
    with pytest.raises(SettingsError, match=f"{option} is"):
        made(square, **{option: seconds})


def test_a_result_cannot_be_kept_for_more_than_a_year() -> None:
    """As with the deployment's own setting."""
    assert made(square, result_ttl_s=31_622_400).result_ttl_s == 31_622_400
    with pytest.raises(SettingsError, match="result_ttl_s is 31622401"):
        made(square, result_ttl_s=31_622_401)


@pytest.mark.parametrize(
    ("option", "value"),
    [("retries", -1), ("retries", 101), ("retries", True), ("retry_delays_s", ()), ("retry_delays_s", (-1,))],
)
def test_retries_that_cannot_be_meant_are_refused(option: str, value: Any) -> None:
    """At import, with the option's name."""
    with pytest.raises(SettingsError, match=f"{option} is"):
        made(square, **{option: value})


def test_an_option_that_there_is_not_is_refused() -> None:
    """A misspelt one would be passed over for ever."""
    with pytest.raises(TypeError, match="timout_s"):
        made(square, timout_s=5)


class Opaque:
    """A type that JSON knows nothing of."""


def takes_task(task: int) -> None: ...
def takes_callback_url(callback_url: str) -> None: ...
def takes_metadata(*, metadata: dict[str, int]) -> None: ...
def takes_many(*numbers: int) -> None: ...
def takes_any_name(**numbers: int) -> None: ...
def takes_by_place(n: int, /) -> None: ...
def says_no_type(n) -> None: ...  # type: ignore[no-untyped-def]
def says_one_type(n: int, m) -> None: ...  # type: ignore[no-untyped-def]
def takes_opaque(n: Opaque) -> None: ...
def takes_function(n: Callable[[], int]) -> None: ...
def takes_opaque_list(n: list[Opaque]) -> None: ...
def takes_iterator(n: Iterator[int]) -> None: ...
def takes_unknown(n: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821
def takes_nonsense(n: int) -> None: ...
def default_of_other_type(n: int = "5") -> None: ...  # type: ignore[assignment]
def default_none(n: int = None) -> None: ...  # type: ignore[assignment] # noqa: RUF013
def default_nan(n: float = float("nan")) -> None: ...
def default_no_json(n: Any = Opaque()) -> None: ...  # noqa: B008
def default_out_of_bounds(n: Annotated[int, pydantic.Field(ge=1)] = 0) -> None: ...
async def is_coroutine(n: int) -> None: ...
def is_generator(n: int) -> Iterator[int]:
    yield n


async def is_async_generator(n: int) -> AsyncIterator[int]:
    yield n


takes_nonsense.__annotations__["n"] = "int int"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (takes_task, "'task' has a name of ours"),
        (takes_callback_url, "'callback_url' has a name of ours"),
        (takes_metadata, "'metadata' has a name of ours"),
        (takes_many, "'numbers' cannot be given by name"),
        (takes_any_name, "'numbers' cannot be given by name"),
        (takes_by_place, "'n' cannot be given by name"),
        (says_no_type, "'n' has no annotation"),
        (says_one_type, "'m' has no annotation"),
        (takes_opaque, "cannot be described as JSON"),
        (takes_function, "cannot be described as JSON"),
        (takes_opaque_list, "cannot be described as JSON"),
        (takes_iterator, "cannot be described as JSON"),
        (takes_unknown, "annotations cannot be read: name 'Nowhere'"),
        (takes_nonsense, "annotations cannot be read"),
        (default_of_other_type, "'n' has the default '5'"),
        (default_none, "'n' has the default None"),
        (default_nan, "'n' has the default nan"),
        (default_no_json, "'n' has the default"),
        (default_out_of_bounds, "'n' has the default 0"),
        (is_coroutine, "must be a plain function"),
        (is_generator, "must be a plain function"),
        (is_async_generator, "must be a plain function"),
        (Opaque, "must be a plain function"),
    ],
)
@pytest.mark.filterwarnings("ignore::pydantic.json_schema.PydanticJsonSchemaWarning")
def test_what_can_never_be_submitted_is_refused_at_import(function: Callable[..., Any], reason: str) -> None:
    """In one line that names the task and what is wrong with it."""
    with pytest.raises(SettingsError) as caught:
        task(function)
    assert str(caught.value).startswith(f"task {function.__name__!r}")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_what_is_no_function_at_all_is_refused() -> None:
    """With a message of ours and not an AttributeError."""
    with pytest.raises(SettingsError, match="must be"):
        task(3)  # type: ignore[call-overload]


def test_every_reserved_name_is_tried_above() -> None:
    """A fourth one needs a test of its own."""
    assert RESERVED == ("task", "callback_url", "metadata")


# -- strictness --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [True, False, 5.0, 5.5, "5", "", None, [5], {"n": 5}, 1e300])
def test_only_an_integer_is_an_integer(value: Any) -> None:
    """Nothing is turned into one."""
    assert list(refusals(SQUARE, {"n": value})) == ["#/n"]


@pytest.mark.parametrize("value", [0, -1, 2**31, 2**63, 2**64, -(2**64), 10**100])
def test_an_integer_of_any_size_stays_what_it_is(value: int) -> None:
    """Beyond 64 bits as well, through the queue's JSON and back."""
    assert SQUARE.arguments(SQUARE.validate({"n": value})) == {"n": value}


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (float, True),
        (float, "1.0"),
        (float, 10**400),
        (str, 5),
        (str, None),
        (bool, 1),
        (bool, "true"),
        (bool, 0),
        (list[int], [1, "2"]),
        (list[int], {"0": 1}),
        (list[int], "12"),
        (dict[str, int], {"a": True}),
        (dict[str, int], []),
        (int | None, "null"),
        (int | str, 1.0),
    ],
)
def test_no_other_type_is_bent_either(hint: Any, value: Any) -> None:
    """Numbers, texts, truths and what is made of them."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = hint
    assert all(pointer.startswith("#/x") for pointer in refusals(made(function), {"x": value}))


def test_missing_and_unknown_parameters_are_all_named() -> None:
    """In one answer, each with its pointer."""

    def function(a: int, b: str, c: int = 3) -> None: ...

    assert refusals(made(function), {"c": "x", "d": 1, "": 2}).keys() == {"#/a", "#/b", "#/c", "#/d", "#/"}


def test_no_value_of_the_caller_stands_in_a_refusal() -> None:
    """Details go to logs; the caller knows what it sent."""
    with pytest.raises(Invalid) as caught:
        SQUARE.validate({"n": "hunter2"})
    assert "hunter2" not in repr(caught.value.errors) + str(caught.value)
    assert caught.value.__suppress_context__


class Item(pydantic.BaseModel):
    """A model that says nothing of strictness."""

    n: int
    tags: list[str] = []


@pytest.mark.parametrize("value", [True, "5", 5.0, None])
def test_a_model_inside_is_as_strict(value: Any) -> None:
    """Also where its author did not ask for it."""

    def function(items: list[Item]) -> None: ...

    assert list(refusals(made(function), {"items": [{"n": 1}, {"n": value}]})) == ["#/items/1/n"]


@pytest.mark.parametrize(
    ("name", "pointer"),
    [
        ("a/b", "#/a~1b"),
        ("a~b", "#/a~0b"),
        ("~1", "#/~01"),
        ("a%b", "#/a%25b"),
        ("a b", "#/a%20b"),
        ("é", "#/%C3%A9"),
        ('"', "#/%22"),
        ("#", "#/%23"),
        ("a\\b", "#/a%5Cb"),
        ("", "#/"),
        ("0", "#/0"),
        ("\n", "#/%0A"),
        ("😀", "#/%F0%9F%98%80"),
    ],
)
def test_a_pointer_is_a_uri_fragment(name: str, pointer: str) -> None:
    """`~` and `/` escaped as a JSON Pointer has it, the rest as a URI has it (RFC 6901, sections 3 and 6)."""
    assert list(refusals(SQUARE, {"n": 1, name: 1})) == [pointer]


def test_bounds_of_an_annotation_hold() -> None:
    """On both sides, for numbers and for lengths, and the schema shows them."""

    def function(
        n: Annotated[int, pydantic.Field(ge=1, le=3)], name: Annotated[str, pydantic.Field(max_length=2)] = "ab"
    ) -> None: ...

    bounded = made(function)
    assert bounded.validate({"n": 3}) == {"n": 3, "name": "ab"}
    assert refusals(bounded, {"n": 0, "name": "abc"}).keys() == {"#/n", "#/name"}
    assert refusals(bounded, {"n": 4}).keys() == {"#/n"}
    assert bounded.schema["properties"]["n"]["maximum"] == 3


def test_the_schema_is_closed_and_names_what_is_required() -> None:
    """Callers read it at `GET /tasks`."""
    assert SQUARE.schema["required"] == ["n"]
    assert SQUARE.schema["properties"]["n"]["type"] == "integer"
    assert SQUARE.schema["additionalProperties"] is False
