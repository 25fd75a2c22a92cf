"""Connections by way of Sentinels: they say which server is the master now, and after a failover another one.

Holds how such an address is read and how a connection finds its master. It never asks without a time limit,
and never takes a server for the master that does not say so itself.
"""

# The connection pool of redis-py gives its connections more than their declared type says.
# mypy: disable-error-code="no-untyped-call, override"

from __future__ import annotations

import re
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import SSLConnection, parse_url
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool, SentinelManagedConnection

from aj.clock import monotonic_s

SENTINEL_PORT = 26_379
# A request waits for a frozen master twice, so that little is left of its 3 s to find out who the master is.
SENTINEL_TIMEOUT_S = 0.25
SEARCH_FOR_S = 0.4
ASK_AGAIN_S, ASK_LATER_S = 0.25, 5.0
FOR_SENTINELS = "sentinel_"

_URL = re.compile(
    r"(?P<scheme>rediss?)\+sentinel://(?P<user>[^@/]*@)?(?P<hosts>[^@/]+)/(?P<master>[^/?]+)(?P<db>/[0-9]+)?"
    r"(?P<query>\?.*)?"
)
_HOST = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")


def is_sentinel_url(url: str) -> bool:
    """Whether `url` names Sentinels instead of a server."""
    return url.startswith(("redis+sentinel://", "rediss+sentinel://"))


def pool_by_sentinels(url: str, **limits: Any) -> SentinelConnectionPool:
    """A pool of connections to whichever server is the master that `url` names; no connection is made yet.

    `redis+sentinel://[user:password@]host:port,host:port/master/db` and the options that a `redis://` URL has.
    User and password are the server's; the Sentinels' own are the options `sentinel_username` and
    `sentinel_password`. With `rediss+sentinel` servers and Sentinels are both reached by TLS.

    Raises: ValueError: the URL cannot be understood; its text may hold parts of a password.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("no address of Sentinels")
    text = f"{match['scheme']}://{match['user'] or ''}sentinel{match['db'] or ''}{match['query'] or ''}"
    options: dict[str, Any] = {**limits, **parse_url(text)}
    uses_tls = options.pop("connection_class", None) is SSLConnection
    options.pop("host", None)
    to_sentinels = {name: options.pop(name) for name in list(options) if name.startswith(FOR_SENTINELS)}
    known = {name.removeprefix(FOR_SENTINELS): value for name, value in to_sentinels.items()}
    if not known.keys() <= {"username", "password"}:
        raise ValueError("an option for Sentinels that there is not")
    if uses_tls:
        known |= {name: value for name, value in options.items() if name.startswith("ssl_")}
    sentinels = Sentinels([_address(each) for each in match["hosts"].split(",")], known, uses_tls)
    kind = MasterTLSConnection if uses_tls else MasterConnection
    return MasterPool(match["master"], sentinels, connection_class=kind, **options)


def _address(text: str) -> tuple[str, int]:
    match = _HOST.fullmatch(text)
    port = SENTINEL_PORT if match is None or match["port"] is None else int(match["port"])
    if match is None or not 1 <= port <= 65_535:
        raise ValueError("no host and port of a Sentinel")
    return match["v6"] or match["name"], port


class Sentinels(Sentinel):
    """Sentinels that are asked one after the other, the one that answered last first, for a short time in all."""

    def __init__(self, addresses: list[tuple[str, int]], options: dict[str, Any], uses_tls: bool) -> None:
        limits = {"socket_connect_timeout": SENTINEL_TIMEOUT_S, "socket_timeout": SENTINEL_TIMEOUT_S}
        super().__init__(
            addresses, sentinel_kwargs={**options, **limits, "ssl": uses_tls, "retry": Retry(NoBackoff(), 0)}
        )

    def discover_master(self, service_name: str) -> tuple[str, int]:
        """The master's host and port. Raises: MasterNotFoundError: no Sentinel that was asked in time knows one."""
        deadline_s, why = monotonic_s() + SEARCH_FOR_S, "none answered in time"
        for sentinel in list(self.sentinels):
            try:
                masters: Any = sentinel.sentinel_masters()
            except redis.RedisError as error:
                why = f"{type(error).__name__}: {error}"
            else:
                state = masters.get(service_name)
                if state is not None and self.check_master_state(state, service_name):
                    return state["ip"], state["port"]
                why = "they know none of that name" if state is None else "it is down, and no other has its place yet"
            self.ask_last(sentinel)
            if monotonic_s() >= deadline_s:
                break
        raise MasterNotFoundError(f"the Sentinels name no master {service_name!r} ({why})")

    def ask_last(self, sentinel: redis.Redis) -> None:
        """Puts one that was of no use behind the others. Threads may do so at once: each leaves a whole list."""
        self.sentinels = [*(each for each in self.sentinels if each is not sentinel), sentinel]


class MasterPool(SentinelConnectionPool):
    """Asks again and again, while it is used, who the master is, and leaves one that has been replaced.

    A master that lives when it is replaced, as in a planned failover, serves on for ten seconds before it is told,
    and all that it accepts then is thrown away.
    """

    _ask_again_s = float("-inf")

    def get_connection(self, *args: Any, **options: Any) -> Any:
        self.ask_now_and_then()
        return super().get_connection(*args, **options)

    def ask_now_and_then(self) -> None:
        """Learns who the master is, where that was not asked a moment ago."""
        if monotonic_s() >= self._ask_again_s:
            self._ask_again_s = monotonic_s() + ASK_AGAIN_S
            try:
                self.get_master_address()
            except redis.RedisError:
                # Nobody knows better. Who has a connection goes on, and is not kept waiting for the Sentinels again.
                self._ask_again_s = monotonic_s() + ASK_LATER_S


class MasterConnection(SentinelManagedConnection):
    """A connection to the master of the moment. Who calls tries again, so that it makes one try to connect."""

    def connect(self) -> None:
        if self._sock:
            return
        try:
            self.connect_to(self.connection_pool.get_master_address())
        except BaseException:
            # Also where only a subscription could not be renewed: a connection without it would hear nothing.
            self.disconnect()
            raise

    def on_connect_check_health(self, check_health: bool = True) -> None:
        """Asks the server what it is: a Sentinel that was cut off from the others names the master of yesterday.

        Source: Redis documentation, "Guidelines for Redis clients with support for Redis Sentinel", step 3.
        """
        super().on_connect_check_health(check_health)
        self.send_command("ROLE", check_health=False)
        role: Any = self.read_response()
        if role[0] != b"master":
            sentinels = self.connection_pool.sentinel_manager
            sentinels.ask_last(sentinels.sentinels[0])
            raise redis.ConnectionError(f"{self.host}:{self.port}, which a Sentinel called the master, is a replica")

    def read_response(self, *args: Any, disconnect_on_error: bool | None = True, **options: Any) -> Any:
        """Ends the connection at an error, as others do: a reply that comes late must not answer the next command."""
        return super().read_response(*args, disconnect_on_error=disconnect_on_error, **options)


class MasterTLSConnection(MasterConnection, SSLConnection):
    """The same by TLS."""
