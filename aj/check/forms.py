"""The forms that members of a profile and options have: each function says what is wrong with a value, or nothing.

What is sent byte by byte has to be right here, since a mistake in it would be told as one of the server.
This file knows no profile and no HTTP connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

MOST_BYTES = 100 * 1024 * 1024
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # Source: RFC 9110 section 5.6.2
_VALUE = re.compile(r"[\x21-\x7e]+(?: +[\x21-\x7e]+)*")
# Visible ASCII without what no address has, and without the fragment, which is not sent. Source: RFC 3986 appendix A.
_RESOURCE = re.compile(r'/(?:%[0-9A-Fa-f]{2}|[^\x00-\x20\x7f-\U0010ffff"#%<>\\^`{|}])*')
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_OWN_FIELDS = ("connection", "content-length", "host", "transfer-encoding", "user-agent")


def token(text: str) -> str:
    """Methods and names of header fields."""
    return "" if _TOKEN.fullmatch(text) else f"must be letters, digits and dashes, not {text!r}"


def field_name(text: str) -> str:
    """The name of a header field that is sent."""
    return "is a field that the check sets itself" if text.lower() in _OWN_FIELDS else token(text)


def field_value(text: str) -> str:
    """The value of a header field; an empty one stands for none."""
    sound = not text or _VALUE.fullmatch(text)
    return "" if sound else f"must be visible ASCII without spaces around it, not {text!r}"


def header_fields(table: Mapping[str, str]) -> str:
    """Names and values that each submission has."""
    for name, value in table.items():
        if field_name(name):
            return f"has {name!r}, which {field_name(name)}"
        if field_value(value):
            return f"has {name!r}, whose value {field_value(value)}"
    return ""


def key_field(text: str) -> str:
    """The field that shows an API key, with `{key}` where that stands."""
    name, _, form = (each.strip() for each in text.partition(":"))
    sound = form.count("{key}") == 1 and not field_name(name) and not field_value(form)
    return "" if sound else "must be a field with {key} in it, such as 'X-Key: {key}'"


def resource(text: str) -> str:
    """A path that is sent as it stands."""
    return _path(text, text)


def job_resource(text: str) -> str:
    """A path with `{id}` where the id of a job stands."""
    return _path(text, text.replace("{id}", "")) if "{id}" in text else f"must have {{id}} in it, not be {text!r}"


def _path(text: str, fixed: str) -> str:
    """What is wrong with a path, of which `fixed` is left where what stands for something else is taken out."""
    if not text.startswith("/"):
        return f"must begin with /, not be {text!r}"
    unknown = re.search(r"\{[^{}]*\}", fixed)
    if unknown:
        return f"has {unknown[0]} in it, which stands for nothing: {text!r}"
    sound = _RESOURCE.fullmatch(fixed)
    return "" if sound else f"must be visible ASCII without spaces, # and what else no path has, not {text!r}"


def asked_job_resource(text: str) -> str:
    """The same, with a method and a space before it where the method is another one than usual."""
    method, space, path = text.rpartition(" ")
    wrong = token(method) if space else ""
    return f"has a method before its path, which {wrong}" if wrong else job_resource(path)


def member(text: str) -> str:
    """Where a member stands in a document: names with dots between them."""
    return "" if all(text.split(".")) else f"must be names with single dots between them, not {text!r}"


def name(text: str) -> str:
    """The name of a member, a word, or a reason."""
    return "" if text.strip() else "must not be empty"


def statuses(least: int, most: int, numbers: tuple[int, ...]) -> str:
    """Statuses of answers, at least one."""
    sound = numbers and all(least <= each <= most for each in numbers)
    return "" if sound else f"must be statuses from {least} to {most}, at least one, not {list(numbers)}"


def size(number: int) -> str:
    """The size of a body that is sent."""
    return "" if 1 <= number <= MOST_BYTES else f"must be from 1 to {MOST_BYTES} bytes, not {number}"


def is_host(text: str) -> bool:
    """Whether this can be the name of a host, or its IPv4 address: what a resolver takes without an error."""
    try:
        return bool(_HOST.fullmatch(text) and text.encode("idna"))
    except UnicodeError:  # a part of it is empty, or too long
        return False


def is_base(url: str) -> bool:
    """Whether this is an address to which paths can be added, without what is not sent or not for all to see."""
    try:
        parts = urlsplit(url)
        reachable = parts.scheme in ("http", "https") and parts.port != 0 and "@" not in parts.netloc
        host = parts.hostname or ""
    except ValueError:
        return False
    plain = not parts.query and not parts.fragment and not resource(f"/{url}")
    return reachable and plain and (is_host(host) or ":" in host)


def json_value(value: Any) -> str:
    """What is sent as JSON, which has no dates, no NaN, and no half of a surrogate pair. Source: RFC 8259."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return "cannot be sent as JSON"
    return ""


def each(judge: Callable[[str], str], values: tuple[str, ...]) -> str:
    """The same for all of a list."""
    return next((f"has an entry that {wrong}" for wrong in map(judge, values) if wrong), "")


def reasons(table: Mapping[str, str]) -> str:
    """Reasons by the names of what is not offered; an empty one would be passed over."""
    return next((f"has {key!r} without a reason" for key, reason in table.items() if not reason.strip()), "")


FieldName = Annotated[str, field_name]
FieldNameOrNone = Annotated[str, lambda text: field_name(text) if text else ""]
KeyField = Annotated[str, key_field]
Method = Annotated[str, token]
HeaderFields = Annotated[Mapping[str, str], header_fields]
Resource = Annotated[str, resource]
Resources = Annotated[tuple[str, ...], partial(each, resource)]
JobResource = Annotated[str, job_resource]
AskedJobResource = Annotated[str, asked_job_resource]
Member = Annotated[str, member]
Members = Annotated[tuple[str, ...], partial(each, member)]
Name = Annotated[str, name]
Names = Annotated[tuple[str, ...], partial(each, name)]
Accepting = Annotated[tuple[int, ...], partial(statuses, 200, 299)]
Refusing = Annotated[tuple[int, ...], partial(statuses, 400, 499)]
Size = Annotated[int, size]
JsonValue = Annotated[Any, json_value]
Reasons = Annotated[Mapping[str, str], reasons]
