"""The API that a command talks to: the options which name it, and the jobs in it. The commands share all of this."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import click

from aj.cli.ends import tell_error
from aj.cli.terminal import talk_over
from aj.cli.text import plain
from aj.cli.values import Input, read
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

        Raises:
            ClientError: it is no id, and no URL of a job.
            click.UsageError: there is a key, and it is not for that API.
        """
        try:
            return self.client.job(named)
        except ClientError:
            base, path, _ = named.rpartition("/jobs/")
            if "://" not in base or not path:
                raise
        if self.api_key is not None:
            raise click.UsageError(f"the API key is for {self.url}, and the job is not there; name its API with --url")
        return self._client_of(base).job(named)

    def _client_of(self, base: str) -> Client:
        return Client(base, api_key=self.api_key, timeout_s=self.patience_s, on_trouble=_FirstTrouble(base))


class _FirstTrouble:
    """Tells the person who waits why it takes so long, once: the tries that follow mostly meet the same."""

    def __init__(self, base: str) -> None:
        self._is_told, self._more = False, "; AJ_URL or --url names another API" if base == DEFAULT_URL else ""

    def __call__(self, text: str) -> None:
        if not self._is_told:
            self._is_told = True
            talk_over(f"aj: {plain(text)}{self._more}")


def with_api(command: Command) -> Command:
    """Gives `command` the Api that its options name as its first argument, and turns its errors into exit codes."""

    @functools.wraps(command)
    def called(url: str, api_key: str | None, api_key_file: BinaryIO | None, as_json: bool, **given: Any) -> int:
        key = api_key if api_key_file is None else read(api_key_file, 1000).decode("ascii", "replace").strip()
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
    try:
        Client(value)
    except ClientError as error:
        raise click.BadParameter(f"{error} (an example: https://example.com/api)") from None
    return value.rstrip("/")


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
    click.option("--api-key-file", type=Input(), help="A file that holds the key; - is standard input."),
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
