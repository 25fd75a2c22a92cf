"""Tasks: plain functions that may be submitted by name, with typed parameters.

Holds the decorator, the parameter models and the table of tasks of one process.
It knows no queue and no HTTP, and never imports a name that came over the wire.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar, Unpack, get_type_hints, overload
from urllib.parse import quote

import pydantic
from pydantic_core import PydanticSerializationError

from aj.errors import FieldError, Invalid, SettingsError
from aj.job import to_json
from aj.settings import LONGEST_TTL_S

Function = TypeVar("Function", bound=Callable[..., Any])

# Members of a submission that are ours; a task cannot have parameters of these names.
RESERVED = ("task", "callback_url", "metadata")

MOST_RETRIES = 100
RETRY_DELAYS_S = (1.0, 5.0, 30.0, 120.0, 600.0)

_MARK = "__aj_task__"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_NOT_PLAIN = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
# Values of these have one JSON form, which holds no set.
_PLAIN = frozenset((str, int, float, bool, type(None)))
_CONFIG = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)


class Options(TypedDict, total=False):
    """What `@task` can be told; `task` says what each means."""

    name: str | None
    timeout_s: int | None
    queue: str | None
    retries: int
    retry_delays_s: Sequence[float]
    result_ttl_s: int | None


@dataclass(frozen=True, slots=True)
class Task:
    """A function with the name it is submitted by. None as a number of seconds means the deployment's default.

    Raises: SettingsError: an option is not what it may be.
    """

    name: str
    function: Callable[..., Any]
    params: type[pydantic.BaseModel] = field(repr=False)
    timeout_s: int | None = None
    queue: str | None = None
    retries: int = 0
    retry_delays_s: Sequence[float] = RETRY_DELAYS_S
    result_ttl_s: int | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SettingsError(
                f"task name {self.name!r} must be 1 to 100 letters, digits, dots, dashes or underscores"
            )
        delays_s = tuple(self.retry_delays_s)
        object.__setattr__(self, "retry_delays_s", delays_s)
        are_delays = all(isinstance(each, int | float) and 0 <= each < math.inf for each in delays_s)
        for option, is_fine, accepted in (
            ("timeout_s", _is_time(self.timeout_s), "a whole number of seconds, at least 1"),
            ("result_ttl_s", _is_time(self.result_ttl_s, LONGEST_TTL_S), f"whole seconds, 1 to {LONGEST_TTL_S}"),
            ("retries", type(self.retries) is int and 0 <= self.retries <= MOST_RETRIES, f"0 to {MOST_RETRIES}"),
            ("retry_delays_s", are_delays and delays_s, "some seconds, none negative"),
        ):
            if not is_fine:
                raise SettingsError(f"task {self.name!r}: {option} is {getattr(self, option)!r}; it must be {accepted}")

    def validate(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """JSON `members` as this task's parameters, defaults filled in, in their JSON form again.

        Raises: Invalid: a parameter is missing, unknown or of another type; one `FieldError` for each.
        """
        try:
            model = _checked(self.params, to_json(dict(members)))
            dumped: dict[str, Any] = model.model_dump(mode="json", by_alias=True)
            if all(type(each) in _PLAIN for each in model.__dict__.values()):
                return dumped
            in_order: dict[str, Any] = _sets_in_order(model.model_dump(), dumped)
            return in_order
        except pydantic.ValidationError as error:
            raise Invalid(f"The parameters do not fit the task {self.name!r}.", _field_errors(error)) from None
        except PydanticSerializationError as error:
            raise Invalid(f"The parameters of the task {self.name!r} cannot be kept as JSON: {error}.") from None

    def arguments(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function, from parameters in their JSON form.

        Raises: ValueError: they do not fit, as when a job was submitted to an older version of the task.
        """
        model = _checked(self.params, to_json(dict(params)))
        return {each.alias or name: getattr(model, name) for name, each in type(model).model_fields.items()}

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters."""
        return self.params.model_json_schema()

    def schema_with_refs(self, template: str) -> dict[str, Any]:
        """The schema for use inside another document, where `template` says where its definition `{model}` stands."""
        return self.params.model_json_schema(ref_template=template)

    @property
    def description(self) -> str:
        """The function's docstring; empty where it has none."""
        return inspect.getdoc(self.function) or ""


@overload
def task(function: Function, /) -> Function: ...
@overload
def task(**options: Unpack[Options]) -> Callable[[Function], Function]: ...
def task(function: Function | None = None, /, **options: Unpack[Options]) -> Function | Callable[[Function], Function]:
    """Lets a plain function with annotated parameters be submitted as a job; the function stays as it is.

    `name`: what it is submitted by; the function's own where it is not given.
    `timeout_s`: its time, whole seconds. `result_ttl_s`: how long an ended job can be read, whole seconds.
    `queue`: one of the deployment's queues.
    `retries`: how often a job runs again that fails by an exception, by its time or by the death of its worker,
    after `retry_delays_s` seconds each, of which the last serves all that follow. Such a task must bear to be run
    twice.

    Raises: SettingsError, at import: an option is wrong, a parameter cannot be typed or has a reserved name.
    """

    def mark(function: Function) -> Function:
        title = options.get("name") or str(getattr(function, "__name__", function))
        given: dict[str, Any] = {option: value for option, value in options.items() if option != "name"}
        setattr(function, _MARK, Task(title, function, _params_model(title, function), **given))
        return function

    return mark if function is None else mark(function)


class Registry:
    """The tasks of one process, by name, in the order in which their modules define them."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks: dict[str, Task] = {}
        for each in tasks:
            known = self._tasks.setdefault(each.name, each)
            if known is not each:
                raise SettingsError(f"two tasks are named {each.name!r}: give one of them another name=")

    @classmethod
    def load(cls, modules: Iterable[str]) -> Registry:
        """Imports `modules` and collects their tasks.

        Raises: SettingsError: a module cannot be found, or no module holds a task.
        """
        found: list[Task] = []
        for name in modules:
            try:
                module = importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name is None or not (name + ".").startswith(error.name + "."):
                    raise
                raise SettingsError(f"AJ_TASKS names {name!r}, which cannot be imported: {error}") from None
            # Of what is no function no attribute is asked: Flask's `current_app` raises, and a mock has every one.
            functions = [value for value in vars(module).values() if inspect.isroutine(value)]
            found += [getattr(value, _MARK) for value in functions if hasattr(value, _MARK)]
        if not found:
            raise SettingsError(f"AJ_TASKS is {','.join(modules)!r}, where no function is marked with @task")
        return cls(found)

    @property
    def default(self) -> Task:
        """The task that a submission without `task` means: the first of the first module."""
        return next(iter(self._tasks.values()))

    def get(self, name: str) -> Task | None:
        return self._tasks.get(name)

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())


def _is_time(value: Any, most_s: float = math.inf) -> bool:
    return value is None or (type(value) is int and 1 <= value <= most_s)


def _params_model(title: str, function: Callable[..., Any]) -> type[pydantic.BaseModel]:
    """A pydantic model with one field for each parameter of `function`.

    The fields have names of their own and carry the parameters' names as aliases, since a parameter called
    `json` or `copy` would hide a method of the model.
    """
    hints = _hints(title, function)
    fields: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters.values()
    for number, parameter in enumerate(parameters):
        wrong = None
        if parameter.name in RESERVED:
            wrong = f"has a name of ours ({', '.join(RESERVED)})"
        elif parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            wrong = "cannot be given by name"
        elif parameter.name not in hints:
            wrong = "has no annotation"
        if wrong:
            raise SettingsError(f"task {title!r}: parameter {parameter.name!r} {wrong}")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"p{number}"] = (hints[parameter.name], pydantic.Field(default, alias=parameter.name))
    try:
        model: type[pydantic.BaseModel] = pydantic.create_model(f"{title} parameters", __config__=_CONFIG, **fields)
        model.model_json_schema()
    except (pydantic.errors.PydanticUserError, NameError) as error:
        reason = str(error).splitlines()[0]
        raise SettingsError(f"task {title!r}: its parameters cannot be described as JSON: {reason}") from None
    for parameter in parameters:
        if parameter.default is not parameter.empty and not _fits(hints[parameter.name], parameter.default):
            wrong = f"has the default {parameter.default!r}, which its annotation does not allow"
            raise SettingsError(f"task {title!r}: parameter {parameter.name!r} {wrong}")
    return model


def _hints(title: str, function: Callable[..., Any]) -> dict[str, Any]:
    if not inspect.isroutine(function) or any(each(function) for each in _NOT_PLAIN):
        raise SettingsError(f"task {title!r} must be a plain function")
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, SyntaxError, TypeError) as error:
        raise SettingsError(f"task {title!r}: its annotations cannot be read: {error}") from None


def _fits(hint: Any, default: Any) -> bool:
    """Whether `default` survives as JSON; else each submission would be accepted with it, and each run fail."""
    probe = pydantic.create_model("probe", __config__=_CONFIG, value=(hint, pydantic.Field(alias="value")))
    try:
        _checked(probe, probe.model_construct(value=default).model_dump_json(warnings="error").encode())
    except ValueError:
        return False
    return True


def _checked(model: type[pydantic.BaseModel], json: bytes) -> pydantic.BaseModel:
    """Strict is asked for here and not in the model's config, since models inside it do not inherit that."""
    return model.model_validate_json(json, strict=True)


def _sets_in_order(value: Any, dumped: Any) -> Any:
    """`dumped`, the JSON form of `value`, with the members of each set sorted.

    Python gives them in an order that differs between processes, and one payload must have one fingerprint.
    """
    if isinstance(value, set | frozenset) and isinstance(dumped, list):
        one = next(iter(value), None)  # the members of a set are of one form
        return sorted((_sets_in_order(one, each) for each in dumped), key=to_json)
    if isinstance(value, Mapping) and isinstance(dumped, dict) and len(value) == len(dumped):
        pairs = zip(dumped.items(), value.values(), strict=True)
        return {name: _sets_in_order(inner, each) for (name, each), inner in pairs}
    if isinstance(value, list | tuple) and isinstance(dumped, list) and len(value) == len(dumped):
        return [_sets_in_order(inner, each) for inner, each in zip(value, dumped, strict=True)]
    return dumped


def _field_errors(error: pydantic.ValidationError) -> tuple[FieldError, ...]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(FieldError(_pointer(each["loc"]), each["msg"]) for each in details)


def _pointer(path: tuple[int | str, ...]) -> str:
    """A JSON Pointer as a URI fragment. Source: RFC 6901 sections 3 and 6."""
    return "#" + "".join("/" + quote(str(part).replace("~", "~0").replace("/", "~1")) for part in path)
