"""Every setting of `aj`: one table, read once at the edge of a process, checked there, passed down.

A setting is an environment variable `AJ_…`; the same name is a Flask config key, and so is most often the name
without `AJ_`.
A wrong one stops the process with one line that names the variable, its value and what is accepted.
This file holds values only: it opens nothing and starts nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from aj.errors import SettingsError
from aj.given import Given, in_config, in_environment, unknown
from aj.rate import Rate
from aj.signature import decode_secret

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DAY_S = 86_400
LONGEST_TTL_S = 366 * DAY_S


@dataclass(frozen=True, slots=True)
class Allowed:
    """A destination that may be called although it is not public: a name or a network, and maybe a port.

    Exactly one of `host` (lower case) and `network` is set; `port` None means any port.
    """

    host: str | None
    network: Network | None
    port: int | None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A caller's name and the SHA-256 of its key, in lower-case hex."""

    name: str
    sha256: str = field(repr=False)


def _parse_text(accepted: str, pattern: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(accepted)
        return text

    return parse


def _parse_int(least: int, most: int) -> Callable[[str], int]:
    accepted = f"a whole number from {least} to {most}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", text) or not least <= int(text) <= most:
            raise ValueError(accepted)
        return int(text)

    return parse


def _parse_list(parse_one: Callable[[str], Any], accepted: str) -> Callable[[str], tuple[Any, ...]]:
    def parse(text: str) -> tuple[Any, ...]:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            raise ValueError(accepted)
        return tuple(parse_one(part) for part in parts)

    return parse


def _parse_seconds(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,3})?", text):
        raise ValueError("a comma list of seconds, none negative, such as 0,5,30")
    return float(text)


def _parse_rate(text: str) -> Rate:
    match = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,5})", text)
    count, window_s = map(int, match.groups()) if match else (0, 0)
    if not count or not 1 <= window_s <= DAY_S:
        raise ValueError("jobs and seconds, at most a day, such as 100/60")
    return Rate(count, window_s)


_ALLOWED = "a comma list of hosts or networks, each with an optional port, such as 127.0.0.1:8141,10.0.0.0/8"


def _parse_allowed(text: str) -> Allowed:
    match = re.fullmatch(r"(?:\[(?P<v6>[^\]]+)\]|(?P<plain>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?", text)
    bare_v6 = text.count(":") > 1 and not text.startswith("[")
    if match is None and not bare_v6:
        raise ValueError(_ALLOWED)
    host = text if match is None else match["v6"] or match["plain"]
    port = None if match is None or match["port"] is None else int(match["port"])
    if port is not None and not 1 <= port <= 65_535:
        raise ValueError(_ALLOWED)
    try:
        return Allowed(host=None, network=ipaddress.ip_network(host), port=port)
    except ValueError:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*", host) or re.fullmatch(r"[0-9.]+", host):
            raise ValueError(_ALLOWED) from None
    return Allowed(host=host.lower(), network=None, port=port)


def _parse_secrets(text: str) -> tuple[bytes, ...]:
    try:
        return tuple(decode_secret(part.strip()) for part in text.split(",") if part.strip())
    except SettingsError as error:
        raise ValueError(str(error)) from None


def _parse_api_key(text: str) -> ApiKey:
    name, _, digest = text.rpartition(":")
    if not re.fullmatch(_CALLER, name) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError("a comma list of name:sha256hex, as `aj key new NAME` prints them")
    return ApiKey(name, digest)


_SENTINEL = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?"
_REDIS_URL = _parse_text(
    "redis://, rediss:// or unix:// with an address, such as redis://127.0.0.1:6379/0, or "
    "redis+sentinel://host:26379,host:26379/master-name/0",
    # A slash too many would make a path of a password, which is shown, and a host of nothing, which is this machine.
    rf"rediss?://([^/?#\s]*@)?[^@/?#:\s][^@/?#\s]*(/[0-9]*)?(\?\S*)?|unix://\S+|rediss?\+sentinel://([^@/\s]*@)?{_SENTINEL}(,{_SENTINEL})*/[^/?\s]+(/[0-9]+)?(\?\S*)?",
)
_MODULES = _parse_list(
    _parse_text("a comma list of Python modules, such as shop.tasks", r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"),
    "at least one Python module",
)
_TASK_APP = _parse_text(
    "module:name of a Flask app, or module:name() of a function that makes one, such as shop.web:app",
    r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\(\))?",
)
_QUEUE_NAMES = _parse_list(
    _parse_text("a comma list of queue names of letters, digits and _ - : .", r"[A-Za-z0-9_:.-]{1,100}"),
    "at least one queue name",
)
_CALLER = r"[A-Za-z0-9_.-]{1,64}"
_CALLERS = _parse_list(_parse_text("a comma list of names in AJ_API_KEYS", _CALLER), "at least one name")
_PREFIX = r"(?!rq(:|$))[A-Za-z0-9_:.-]{1,40}"
_PORT = _parse_int(1, 65_535)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one process was told. The table in `docs/settings.md` gives each meaning; units end the names."""

    redis_url: str | None = field(default=None, repr=False, metadata={"parse": _REDIS_URL, "secret": True})
    tasks: tuple[str, ...] = field(default=("aj.tasks",), metadata={"parse": _MODULES})
    task_app: str | None = field(default=None, metadata={"parse": _TASK_APP})
    prefix: str = field(
        default="aj",
        metadata={"parse": _parse_text("1 to 40 of letters, digits and _ - : ., but not RQ's own rq", _PREFIX)},
    )
    queues: tuple[str, ...] = field(default=("q:jobs2",), metadata={"parse": _QUEUE_NAMES})
    workers: int = field(default=1, metadata={"parse": _parse_int(1, 256)})
    jobs_per_horse: int = field(default=100, metadata={"parse": _parse_int(1, 10**9)})
    result_ttl_s: int = field(default=DAY_S, metadata={"parse": _parse_int(1, LONGEST_TTL_S)})
    tombstone_ttl_s: int = field(default=7 * DAY_S, metadata={"parse": _parse_int(0, 3660 * DAY_S)})
    idempotency_ttl_s: int = field(default=DAY_S, metadata={"parse": _parse_int(1, LONGEST_TTL_S)})
    job_timeout_s: int = field(default=180, metadata={"parse": _parse_int(1, 30 * DAY_S)})
    lease_s: int = field(default=15, metadata={"parse": _parse_int(3, 3600)})
    max_body_bytes: int = field(default=65_536, metadata={"parse": _parse_int(2, 64 * 2**20)})
    max_result_bytes: int = field(default=2**20, metadata={"parse": _parse_int(2, 256 * 2**20)})
    max_queued: int = field(default=100_000, metadata={"parse": _parse_int(1, 10**9)})
    rate: Rate | None = field(default=None, metadata={"parse": _parse_rate})
    webhook_secrets: tuple[bytes, ...] = field(
        default=(), repr=False, metadata={"parse": _parse_secrets, "secret": True}
    )
    api_keys: tuple[ApiKey, ...] = field(
        default=(),
        repr=False,
        metadata={"parse": _parse_list(_parse_api_key, "at least one name:sha256hex"), "secret": True},
    )
    callback_allow: tuple[Allowed, ...] = field(
        default=(_parse_allowed("127.0.0.1:8141"),),
        metadata={"parse": lambda text: _parse_list(_parse_allowed, _ALLOWED)(text) if text.strip() else ()},
    )
    callback_schedule_s: tuple[float, ...] = field(
        default=(0.0, 5.0, 30.0, 120.0, 600.0, 3600.0, 21_600.0),
        metadata={"parse": _parse_list(_parse_seconds, "at least one delay in seconds")},
    )
    callback_timeout_s: int = field(default=15, metadata={"parse": _parse_int(1, 300)})
    host: str = field(
        default="127.0.0.1", metadata={"parse": _parse_text("an address to listen on", r"[A-Za-z0-9.:_-]{1,255}")}
    )
    port: int = field(default=8140, metadata={"parse": _PORT})
    hooksink_port: int = field(default=8141, metadata={"parse": _PORT})
    web_workers: int = field(default=2, metadata={"parse": _parse_int(1, 256)})
    web_threads: int = field(default=600, metadata={"parse": _parse_int(1, 1024)})
    embedded: Literal["auto", "always", "never"] = field(
        default="auto", metadata={"parse": _parse_text("auto, always or never", r"auto|always|never")}
    )
    redis_server: str | None = field(
        default=None, metadata={"parse": _parse_text("the path of a redis-server or valkey-server", r".+")}
    )
    data_dir: str = field(default=".aj", metadata={"parse": _parse_text("a folder", r".+")})
    # An app's own config may well have a DASHBOARD or a LOG.
    dashboard: Literal["off", "read", "act"] = field(
        default="read", metadata={"parse": _parse_text("off, read or act", r"off|read|act"), "full_name_only": True}
    )
    dashboard_operators: tuple[str, ...] = field(default=(), metadata={"parse": _CALLERS})
    log: Literal["text", "json"] = field(
        default="text", metadata={"parse": _parse_text("text or json", r"text|json"), "full_name_only": True}
    )

    def __post_init__(self) -> None:
        if self.idempotency_ttl_s < self.result_ttl_s:
            raise SettingsError(
                f"AJ_IDEMPOTENCY_TTL_S is {self.idempotency_ttl_s}; it must be at least "
                f"AJ_RESULT_TTL_S, which is {self.result_ttl_s}"
            )

        if len({each.sha256 for each in self.api_keys}) < len(self.api_keys):
            raise SettingsError(
                "AJ_API_KEYS has one key twice; a key belongs to one caller, and a caller may have several"
            )

    def lives_s(self, result_ttl_s: int | None = None) -> tuple[int, int]:
        """How long an ended job can be read, and how long its id is remembered, both from its end.

        `result_ttl_s` is what the job's task says of it.
        """
        readable_s = self.result_ttl_s if result_ttl_s is None else result_ttl_s
        return readable_s, readable_s + self.tombstone_ttl_s

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Settings from environment variables.

        Raises: SettingsError: a value is not accepted, or an `AJ_…` variable is not a setting.
        """
        for sentence in unknown(environ, _PARSERS):
            raise SettingsError(sentence)
        return cls._parsed(in_environment(environ, _PARSERS))

    @classmethod
    def from_config(cls, config: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Settings:
        """Settings from a Flask app's config: `AJ_RESULT_TTL_S`, else `RESULT_TTL_S`.

        Values may be text as in the environment, numbers, or lists and tuples of these. `environ` tells what
        `from_prefixed_env("AJ")` has brought there, and gives API keys, and what is never taken by its bare name.

        Raises: SettingsError: a value is not accepted.
        """
        return cls._parsed(in_config(config, environ or {}, _PARSERS, _FULL_NAME_ONLY, _HEARD))

    @staticmethod
    def unknown(environ: Mapping[str, str]) -> list[str]:
        """A sentence for each `AJ_…` variable of `environ` that is not a setting."""
        return list(unknown(environ, _PARSERS))

    @classmethod
    def _parsed(cls, named: Given) -> Settings:
        """Settings from, for each field that was given, the name it was given by and its text."""
        values: dict[str, Any] = {}
        for name, (called, text) in named.items():
            parse, secret = _PARSERS[name]
            try:
                values[name] = parse(text)
            except ValueError as accepted:
                shown = "a value that is not shown" if secret else repr(text)
                raise SettingsError(f"{called} is {shown}; accepted: {accepted}") from None
        if "idempotency_ttl_s" not in values:
            values["idempotency_ttl_s"] = max(DAY_S, values.get("result_ttl_s", DAY_S))
        return cls(**values)


_PARSERS: dict[str, tuple[Callable[[str], Any], bool]] = {
    each.name: (each.metadata["parse"], each.metadata.get("secret", False)) for each in fields(Settings)
}
_FULL_NAME_ONLY = {each.name for each in fields(Settings) if each.metadata.get("full_name_only")}
# What an operator has said of who may see and do what counts in an app that has not read the environment too.
_HEARD = {*_FULL_NAME_ONLY, "api_keys"}
