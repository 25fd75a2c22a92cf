"""The API that a command talks to: the options which name it, and the jobs in it. The commands share all of this."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import click

from aj.cli.ends import tell_error
from aj.client import Client, ClientError, Job

DEFAULT_URL = "http://127.0.0.1:8140"
PATIENCE_S = 30
Command = Callable[..., int]

_KEY = re.compile(r"[!-~]{1,500}")


@dataclass(frozen=True, slots=True)
class Api:
    """Where the API is, what is shown to it, how long a call may take, and whether answers are wanted in JSON."""

    url: str
    api_key: str | None
    patience_s: float
    as_json: bool

    @property
    def client(self) -> Client:
        return self._client_of(self.url)

    def job(self, named: str) -> Job:
        """The job of this id or URL. A URL may be one of another API, but no key of ours goes there.

        Raises: click.UsageError: the URL is not one of a job, or there is a key and it is not for that API.
        """
        if "://" not in named:
            return self.client.job(named)
        base, path, _ = named.rpartition("/jobs/")
        if not path or not _is_base(base):
            raise click.UsageError(f"{named!r} is no URL of a job, which ends in /jobs/ID")
        if _origin(base) == _origin(self.url):
            return self.client.job(named)
        if self.api_key is not None:
            raise click.UsageError(f"the API key is for {self.url}, and the job is not there; name its API with --url")
        return self._client_of(base).job(named)

    def _client_of(self, base: str) -> Client:
        return Client(base, api_key=self.api_key, timeout_s=self.patience_s)


def with_api(command: Command) -> Command:
    """Gives `command` the Api that its options name as its first argument, and turns its errors into exit codes."""

    @functools.wraps(command)
    def called(url: str, api_key: str | None, api_key_file: BinaryIO | None, as_json: bool, **given: Any) -> int:
        key = api_key if api_key_file is None else api_key_file.read(1000).decode("ascii", "replace").strip()
        if key is not None and not _KEY.fullmatch(key):
            raise click.UsageError("the API key has characters that no key has, or none; it is not shown here")
        api = Api(url, key, given.pop("patience_s"), as_json)
        try:
            return command(api, **given)
        except ClientError as error:
            return tell_error(error, as_json)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """The callback of an option that takes a number of seconds, more than 0 and not infinite."""
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 < number < 1e9:
        raise click.BadParameter(f"{value!r} is no number of seconds")
    return number


def _checked_url(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not _is_base(value):
        raise click.BadParameter(f"it must be where an API is, such as {DEFAULT_URL} or https://example.com/api")
    return value.rstrip("/")


def _is_base(text: str) -> bool:
    """Whether this is an http address without a query, a fragment or a password in it."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and " " not in text
    bare = not (parts.query or parts.fragment or "@" in parts.netloc)
    return is_plain and bare and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


_OPTIONS = (
    click.option(
        "--url",
        envvar="AJ_URL",
        default=DEFAULT_URL,
        show_default=True,
        show_envvar=True,
        callback=_checked_url,
        help="Where the API is mounted.",
    ),
    click.option(
        "--api-key",
        envvar="AJ_API_KEY",
        show_envvar=True,
        help="The key to show there. Others on this machine can see an option: the variable or the file is safer.",
    ),
    click.option("--api-key-file", type=click.File("rb"), help="A file that holds the key; - is standard input."),
    click.option(
        "--patience",
        "patience_s",
        metavar="SECONDS",
        callback=seconds,
        default=str(PATIENCE_S),
        show_default=True,
        help="How long one call may take, with all its tries, while the API does not answer.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON, errors included."),
)
