"""How an API spells the contract: its paths, field names and words of status, read from a small TOML file.

A profile that is wrong is refused with one line that names the member; nothing of it is guessed.
This file knows no HTTP.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import unquote, urlsplit

from aj.check import forms
from aj.errors import CheckError

WORDS = ("queued", "running", "succeeded", "failed")
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Submit:
    """How a job is submitted, and where the answer says which one it is. Bodies are JSON values."""

    path: forms.Resource
    body: forms.JsonValue
    method: forms.Method = "POST"
    accepted: forms.Accepting = (202,)
    invalid: forms.Refusing = (422,)  # what answers JSON that is none of what is wanted
    headers: forms.HeaderFields = field(default_factory=dict)
    id: forms.Member = ""  # the member of the answer that holds the id; nothing where Location alone says it
    status: forms.Member = ""  # the member that says the status, if there is one
    members: forms.Names = ()  # where given: the answer has exactly these
    task: forms.Name = ""  # the member that names another task
    metadata: forms.Name = ""  # the member that is echoed in the job's document
    location: forms.FieldNameOrNone = "Location"  # the header that leads to the job
    slow_body: forms.JsonValue = None
    slow_path: forms.Resource = ""  # where jobs of another kind have another path; so the next ones
    failing_body: forms.JsonValue = None
    failing_path: forms.Resource = ""
    too_large_bytes: forms.Size = 0  # a body of so many bytes is over the limit; 0: not known


@dataclass(frozen=True, slots=True)
class Job:
    """Where a job is read, and which members of its document say what; `path` has `{id}` in it."""

    path: forms.JobResource
    status: forms.Member
    id: forms.Member = ""
    result: forms.Member = ""  # the member that holds the result, or
    result_path: forms.JobResource = ""  # the path that serves it
    error: forms.Member = ""
    error_types: forms.Names = ()
    cancelled: forms.Name = ""  # the type of the error of a job that was cancelled
    times: forms.Members = ()  # members that are times, in the order in which they come to pass


@dataclass(frozen=True, slots=True)
class Paths:
    """Further resources; what is not there is not offered."""

    cancel: forms.AskedJobResource = ""  # with the method before it where that is not POST: `DELETE /jobs/{id}`
    delete: forms.JobResource = ""
    result: forms.JobResource = ""  # the bare result, beside the one in the document
    list: forms.Resource = ""
    list_member: forms.Member = "jobs"
    deliveries: forms.JobResource = ""  # the log of attempts to bring a job's webhook; POST to it sends it again
    deliveries_member: forms.Member = "attempts"
    about: forms.Resources = ()  # what the API tells of itself
    health: forms.Resources = ()


@dataclass(frozen=True, slots=True)
class Headers:
    """Header fields that an API may spell in its own way; `api_key` has `{key}` in it."""

    idempotency: forms.FieldName = ""
    replayed: forms.FieldName = ""
    api_key: forms.KeyField = "Authorization: Bearer {key}"

    @property
    def shows_key(self) -> tuple[str, str]:
        """The name of the field that shows the API key, and its value with `{key}` in it."""
        name, _, form = self.api_key.partition(":")
        return name.strip(), form.strip()


@dataclass(frozen=True, slots=True)
class Profile:
    """One API's way to say it all. `not_offered` maps names of groups or points to the reason."""

    name: str
    title: forms.Name
    submit: Submit
    job: Job
    words: Mapping[str, tuple[str, ...]]
    paths: Paths = field(default_factory=Paths)
    headers: Headers = field(default_factory=Headers)
    callback: forms.Name = ""  # the member of the body that holds the address of the webhook
    not_offered: forms.Reasons = field(default_factory=dict)

    def status_of(self, document: Any) -> str | None:
        """Which of our four words the document's status means, or None where it means none of them."""
        word = as_word(at(document, self.job.status))
        return next((ours for ours, theirs in self.words.items() if word in theirs), None)

    def id_at(self, address: str) -> str:
        """The id of the job that is read at this address: where `job.path` has it, else the last part of the path."""
        parts = urlsplit(address)
        before, _, behind = self.job.path.partition("{id}")
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        found = re.search(f"{re.escape(before)}([^/?&]+){re.escape(behind)}$", target)
        return unquote(found[1] if found else parts.path.rstrip("/").rpartition("/")[2])


def shipped() -> list[str]:
    """The names of the profiles that come along."""
    folder = files("aj.check").joinpath("profiles")
    return sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml"))


def load(name: str) -> Profile:
    """The profile that comes along under this name, or stands in the file of this name.

    Raises: CheckError: there is none, or it is wrong.
    """
    if name in shipped():
        return parse(name, files("aj.check").joinpath(f"profiles/{name}.toml").read_text("utf-8"))
    try:
        return parse(name, Path(name).read_text("utf-8"))
    except UnicodeDecodeError:
        raise CheckError(f"profile {name}: it is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CheckError(f"there is no profile {name!r} ({reason}); these come along: {', '.join(shipped())}") from None


def parse(name: str, text: str) -> Profile:
    """Raises: CheckError: it is no TOML, or a member is missing, unknown, of a wrong kind or of a wrong form."""
    try:
        members = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CheckError(f"profile {name}: it is not TOML: {error}") from None
    except RecursionError:
        raise CheckError(f"profile {name}: it is nested too deeply") from None
    where = f"profile {name}: "
    if "name" in members:
        raise CheckError(f"{where}name is not known, since the file is the profile's name; title says what it is of")
    parts: dict[str, Any] = {"name": name}
    for key, kind in {"submit": Submit, "job": Job, "paths": Paths, "headers": Headers}.items():
        if key in members:
            parts[key] = _part(kind, members.pop(key), f"{where}{key}.")
    parts["words"] = _words(members.pop("words", {}), where)
    profile = _part(Profile, {**members, **parts}, where)
    if bool(profile.job.result) == bool(profile.job.result_path):
        raise CheckError(f"{where}job must have either result (a member) or result_path")
    if profile.submit.status and not profile.words["queued"]:
        raise CheckError(f"{where}words.queued must have a word, since submit.status is to say it")
    return profile


def _part(kind: type[Part], members: Any, where: str) -> Part:
    """A dataclass of `kind` from a table of TOML."""
    if not isinstance(members, dict):
        raise CheckError(f"{where.rstrip('.')} must be a table")
    hints, known = get_type_hints(kind, include_extras=True), {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for name in members:
        if name not in known:
            raise CheckError(f"{where}{name} is not known; there are {', '.join(known)}")
    for name, each in known.items():
        if name not in members and each.default is MISSING and each.default_factory is MISSING:
            raise CheckError(f"{where}{name} is missing")
    values = {name: _value(hints[name], value, where + name) for name, value in members.items()}
    for name, value in values.items():
        judges = get_args(hints[name])[1:] if get_origin(hints[name]) is Annotated else ()
        is_none = value == known[name].default == ""  # an empty text where that may be says that there is none
        wrong = "" if is_none else next((said for judge in judges if (said := judge(value))), "")
        if wrong:
            raise CheckError(f"{where}{name} {wrong}")
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if hint in (tuple[str, ...], tuple[int, ...]):
        wanted = str if hint == tuple[str, ...] else int
        if isinstance(value, list) and all(type(each) is wanted for each in value):
            return tuple(value)
        raise CheckError(f"{where} must be a list of {'strings' if wanted is str else 'numbers'}, not {value!r}")
    if hint == Mapping[str, str]:
        if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
            return value
        raise CheckError(f"{where} must be a table of strings")
    if hint in (str, int) and type(value) is not hint:
        raise CheckError(f"{where} must be a {'string' if hint is str else 'whole number'}, not {value!r}")
    return value


def _words(table: Any, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(table, dict) or set(table) - set(WORDS):
        raise CheckError(f"{where}words must be a table of {', '.join(WORDS)}")
    words = {ours: _value(tuple[str, ...], table.get(ours, []), f"{where}words.{ours}") for ours in WORDS}
    if not words["succeeded"]:
        raise CheckError(f"{where}words.succeeded must have at least one word")
    said = [word for theirs in words.values() for word in theirs]
    empty = next((ours for ours, theirs in words.items() if not all(map(str.strip, theirs))), "")
    if empty:
        raise CheckError(f"{where}words.{empty} has an empty word")
    if len(said) != len(set(said)):
        raise CheckError(f"{where}words has one word twice")
    return words


def at(document: Any, path: str) -> Any:
    """The member of a JSON value at a dotted path, or None where there is none."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def has(document: Any, path: str) -> bool:
    """Whether there is a member at the dotted path, be it null."""
    parent, _, name = path.rpartition(".")
    holder = at(document, parent) if parent else document
    return isinstance(holder, dict) and name in holder


def as_word(value: Any) -> str:
    """A status as a word, also where an API says it by `true` or a number."""
    return value if isinstance(value, str) else json.dumps(value)
