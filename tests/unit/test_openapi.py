"""The OpenAPI document: valid, whole, and made from what the code does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import BaseModel, Field

from aj import task
from aj.blueprint import OPEN_TO_ALL, ROUTES
from aj.job import CallbackState, ErrorType, Status
from aj.openapi import Guard, make_catalogue, make_document
from aj.openapi.fields import SENT, TAKEN
from aj.openapi.operations import OPERATIONS
from aj.registry import Registry
from aj.settings import Settings
from tests.support import tasks, typed_tasks
from tests.support.task_modules import make_module
from tests.unit.test_errors import LEAVES

OURS = [leaf for leaf in LEAVES if leaf.__module__ == "aj.errors"]
Make = Callable[..., Registry]


def document(registry: Registry | None = None, *, guarded: bool = True) -> dict[str, Any]:
    """As it goes over the wire: JSON and back."""
    used = registry or Registry.load([tasks.__name__, typed_tasks.__name__])
    made = make_document(ROUTES, used, Guard(guarded, OPEN_TO_ALL))
    return dict(json.loads(json.dumps(made)))


@pytest.fixture
def registry_of(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a registry of the functions that are given."""
    return lambda *functions: Registry.load([make_module(monkeypatch, "made_up_tasks", *functions)])


def accepts(made: dict[str, Any], body: Any) -> bool:
    """Whether the document allows `body` as a submission."""
    schema = made["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return bool(OAS31Validator({**schema, "components": made["components"]}).is_valid(body))


def every(value: Any, name: str) -> Iterator[Any]:
    """Each value of a member `name`, however deep."""
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from every(each, name)


@pytest.mark.parametrize("guarded", [True, False])
def test_the_document_is_valid(guarded: bool) -> None:
    """By the rules of OpenAPI 3.1, as somebody else's validator reads them."""
    OpenAPIV31SpecValidator(document(guarded=guarded)).validate()


def test_every_route_has_its_operation_and_no_other_is_told_of() -> None:
    """The same methods and paths as the blueprint's."""
    told = {(method.upper(), path) for path, item in document()["paths"].items() for method in item}
    assert told == {(method, re.sub(r"<string:(\w+)>", r"{\1}", rule)) for method, rule, *_ in ROUTES}
    assert OPERATIONS.keys() == {endpoint for *_, endpoint, _ in ROUTES}


@pytest.mark.parametrize("leaf", OURS, ids=lambda leaf: leaf.__name__)
def test_every_problem_is_among_the_answers(leaf: Any) -> None:
    """Under its status, with its type."""
    made = document()
    schema = made["components"]["schemas"][leaf.__name__]
    assert schema["properties"]["type"]["const"].endswith(f":{leaf.slug}")
    answers = [each[str(leaf.status)] for each in every(made["paths"], "responses") if str(leaf.status) in each]
    assert f"#/components/schemas/{leaf.__name__}" in list(every(answers, "$ref"))


def test_every_reference_leads_somewhere_and_every_component_is_used() -> None:
    """No dead names in either direction."""
    made = document()
    named = {f"#/components/schemas/{name}" for name in made["components"]["schemas"]}
    assert set(every(made, "$ref")) == named


def test_every_header_and_parameter_of_the_table_is_used() -> None:
    """The tables hold what the routes take and send, and nothing else."""
    made = document()
    assert {each["name"] for some in every(made["paths"], "parameters") if isinstance(some, list) for each in some} >= (
        TAKEN.keys()
    )
    assert {name for headers in every(made["paths"], "headers") for name in headers} == SENT.keys()


@pytest.mark.parametrize("word", [*Status, *ErrorType, *CallbackState])
def test_every_word_that_a_job_may_hold_is_told(word: str) -> None:
    """Statuses, error types and states of a webhook."""
    assert word in [each for some in every(document()["components"]["schemas"]["Job"], "enum") for each in some]


def test_keys_are_told_of_where_they_are_needed() -> None:
    """A guarded route has its scheme and its 401; an open one and an open deployment have neither."""
    guarded, free = document(guarded=True), document(guarded=False)
    assert guarded["paths"]["/jobs"]["post"]["security"] == [{"key": []}]
    assert "401" in guarded["paths"]["/jobs"]["post"]["responses"]
    assert not {"security", "401"} & {
        *guarded["paths"]["/tasks"]["get"],
        *guarded["paths"]["/tasks"]["get"]["responses"],
    }
    assert "401" not in free["paths"]["/jobs"]["post"]["responses"]
    assert list(every(free, "security")) == list(every(free, "securitySchemes")) == []


@pytest.mark.parametrize(
    "body",
    [
        {"n": 5},
        {"task": "square", "n": 5},
        {"task": None, "n": 5, "metadata": None, "callback_url": None},
        {"n": 5, "metadata": {"a": [1]}, "callback_url": "https://example.com/hook"},
        {"task": "run_for_ever"},
        {"task": "pack", "item": {"name": "box", "parts": [{"name": "lid", "size": "large"}]}},
    ],
)
def test_what_may_be_submitted_fits_the_document(body: dict[str, Any]) -> None:
    """The default task with and without its name, other tasks with theirs."""
    assert accepts(document(), body)


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"n": "5"},
        {"n": True},
        {"n": 5.5},
        {"n": 5, "m": 6},
        {"task": "nobody", "n": 5},
        {"task": None},
        {"text": "x"},
        {"n": 5, "metadata": []},
        {"n": 5, "callback_url": 5},
        {"task": "pack", "item": {"name": ""}},
        {"task": "pack", "item": {"name": "box", "parts": [{"size": "large"}]}},
    ],
)
def test_what_may_not_be_submitted_does_not_fit_the_document(body: Any) -> None:
    """Missing, unknown and ill-typed members, however deep, and parameters of another task."""
    assert not accepts(document(), body)


def test_definitions_of_one_name_in_two_tasks_keep_apart(registry_of: Make) -> None:
    """Each task refers to its own."""

    def one() -> Any:
        class Thing(BaseModel):
            a: int

        def take_one(thing: Thing) -> None: ...

        take_one.__annotations__ = {"thing": Thing, "return": None}
        return task(take_one)

    def two() -> Any:
        class Thing(BaseModel):
            b: int

        def take_two(thing: Thing) -> None: ...

        take_two.__annotations__ = {"thing": Thing, "return": None}
        return task(take_two)

    made = document(registry_of(one(), two()))
    assert accepts(made, {"thing": {"a": 1}})
    assert not accepts(made, {"thing": {"b": 1}})
    assert accepts(made, {"task": "take_two", "thing": {"b": 1}})
    OpenAPIV31SpecValidator(made).validate()


def test_the_catalogue_tells_of_each_task_what_a_caller_can_use(registry_of: Make) -> None:
    """Name, docstring, time, tries, queue and parameters; what the task leaves open is the deployment's."""

    @task
    def first(n: Annotated[int, Field(ge=1)]) -> None:
        """Does it.

        And more.
        """

    @task(name="second.task", timeout_s=9, result_ttl_s=60, retries=2, retry_delays_s=(0, 5), queue="slow")
    def second() -> None: ...

    settings = Settings(queues=("fast", "slow"), job_timeout_s=60)
    told = make_catalogue(registry_of(first, second), settings)["tasks"]
    parameters = [each.pop("parameters") for each in told]
    assert told == [
        {
            "name": "first",
            "default": True,
            "description": "Does it.\n\nAnd more.",
            "queue": "fast",
            "timeout_s": 60,
            "result_ttl_s": 86_400,
            "retries": 0,
        },
        {
            "name": "second.task",
            "default": False,
            "queue": "slow",
            "timeout_s": 9,
            "result_ttl_s": 60,
            "retries": 2,
            "retry_delays_s": [0, 5],
        },
    ]
    assert parameters[0]["properties"]["n"]["minimum"] == 1
    assert [each["additionalProperties"] for each in parameters] == [False, False]


def test_a_description_stands_in_the_document_too(registry_of: Make) -> None:
    """Where a caller chooses its task."""

    @task
    def told() -> None:
        """Says something."""

    assert document(registry_of(told))["components"]["schemas"]["task.told"]["description"] == "Says something."
