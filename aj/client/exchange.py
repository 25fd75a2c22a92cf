"""One attempt: a request goes out, and one whole answer comes back in time or not at all.

A timeout of `requests` begins anew with every byte, and does not bound the look-up of a name. So the request is made
in a thread, and the caller waits for that thread as long as there is time, and not longer. A thread that nobody waits
for any more has its connection shut under it.
Nothing is tried again here, no redirect is followed, and no password is taken from `.netrc`.
"""

from __future__ import annotations

import contextlib
import contextvars
import http.client
import json
import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import requests
import requests.adapters

from aj import clock
from aj.client.pacing import Deadline, retry_after_s
from aj.version import __version__

USER_AGENT = f"aj-client/{__version__}"
# One attempt waits so long for a sign of life, in seconds, and that much longer than it asked to be held.
SILENCE_S = 10.0
CONNECTIONS = 32
_BODILESS = (204, 304)
_current: contextvars.ContextVar[_Attempt | None] = contextvars.ContextVar("aj_client_attempt", default=None)


@dataclass(frozen=True, slots=True)
class Call:
    """A request. Where `hold_s` is not None, the server is asked to hold it for so long.

    `is_idempotent` says whether twice is as good as once.
    """

    method: str
    url: str
    body: bytes | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    hold_s: int | None = None
    is_idempotent: bool = True

    def at_once(self) -> Call:
        """The same, without asking to be held."""
        return replace(self, hold_s=None)

    def headers(self) -> dict[str, str]:
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json", **self.fields}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.hold_s is not None:
            headers["Prefer"] = f"wait={self.hold_s}"
        return headers


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer to `call`, which took `took_s`. `fields` finds names in any case."""

    call: Call
    status: int
    fields: Mapping[str, str]
    body: bytes
    next_url: str | None
    took_s: float

    @property
    def retry_after_s(self) -> float | None:
        return retry_after_s(self.fields)


class NoAnswer(Exception):  # it never reaches a user
    """An attempt brought no answer. `may_heal` says whether another one might."""

    def __init__(self, text: str, *, may_heal: bool = True) -> None:
        super().__init__(text)
        self.may_heal = may_heal


class Exchange:
    """Sends requests to one API, from any thread. `session` is the caller's own, or None."""

    def __init__(self, api_key: str | None, session: requests.Session | None, *, is_loopback: bool) -> None:
        self._auth = _Auth(api_key)
        self._has_key, self._theirs, self._is_loopback = api_key is not None, session, is_loopback
        self._ours = (os.getpid(), _session())

    def ask(self, call: Call, deadline: Deadline) -> Answer:
        """One attempt. Raises: NoAnswer; whatever a session of the caller's raises."""
        left_s = deadline.left_s()
        if left_s <= 0:
            raise NoAnswer("there was no time left")
        attempt = _Attempt(call, left_s)
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(attempt.run, self), name="aj-client", daemon=True).start()
        try:
            if not attempt.ended.wait(min(left_s, threading.TIMEOUT_MAX)):
                raise NoAnswer("no whole answer came in time")
        finally:
            attempt.leave()
        return attempt.outcome()

    def send(self, call: Call, left_s: float) -> Answer:
        """Sends in this thread; `left_s` bounds each wait, not all of them. Raises: NoAnswer."""
        session = self._session()
        begun_s = clock.monotonic_s()
        try:
            response = session.request(
                call.method,
                call.url,
                data=call.body,
                headers=call.headers(),
                # With something as `auth`, requests looks into no .netrc.
                auth=None if session.auth and not self._has_key else self._auth,
                timeout=(min(left_s, SILENCE_S), min(left_s, SILENCE_S + (call.hold_s or 0))),
                allow_redirects=False,
                # An address of this machine is not asked for at a proxy.
                proxies={"http": None, "https": None, "all": None} if self._is_loopback else None,  # type: ignore[dict-item]
            )
        except (requests.RequestException, OSError, http.client.HTTPException) as error:
            # What is a ValueError too is wrong in the request itself.
            raise NoAnswer(_reason(error), may_heal=not isinstance(error, ValueError)) from error
        _check_whole(response)
        took_s = clock.monotonic_s() - begun_s
        next_url = response.links.get("next", {}).get("url")
        return Answer(call, response.status_code, response.headers, response.content, next_url, took_s)

    def close(self) -> None:
        """Lets go of connections. A session of the caller's is the caller's."""
        self._ours[1].close()

    def _session(self) -> requests.Session:
        if self._theirs is not None:
            return self._theirs
        pid, session = self._ours
        if pid != os.getpid():  # a fork: its connections, and perhaps its locks, are the parent's
            session = _session()
            self._ours = (os.getpid(), session)
        return session


class _Attempt:
    """What goes on in the thread of one attempt, and how whoever waits for it leaves it."""

    def __init__(self, call: Call, left_s: float) -> None:
        self._call, self._left_s = call, left_s
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._connection: Any = None
        self._is_left = False
        self.ended = threading.Event()

    def run(self, exchange: Exchange) -> None:
        _current.set(self)
        try:
            self._answer = exchange.send(self._call, self._left_s)
        except BaseException as error:
            self._error = error
        finally:
            self._connection = None
            self.ended.set()

    def uses(self, connection: Any) -> None:
        """Notes what is to be shut when nobody waits any more. Raises: OSError: nobody does."""
        self._connection = connection
        if self._is_left:
            raise ConnectionAbortedError("nobody waits for this any more")

    def leave(self) -> None:
        """Nobody waits any more: where the thread still does, its connection is shut."""
        self._is_left = True
        sock = getattr(self._connection, "sock", None)
        if sock is not None and not self.ended.is_set():
            with contextlib.suppress(OSError, ValueError):
                sock.shutdown(socket.SHUT_RDWR)

    def outcome(self) -> Answer:
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer


class _Auth(requests.auth.AuthBase):
    def __init__(self, api_key: str | None) -> None:
        self._api_key = api_key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._api_key is not None:
            request.headers["Authorization"] = f"Bearer {self._api_key}"
        return request


class _Noted:
    """Laid over a connection of urllib3: tells the attempt of this thread about it, before it is used."""

    def connect(self) -> None:
        _note(self)
        super().connect()  # type: ignore[misc]
        _note(self)

    def request(self, *args: Any, **kwargs: Any) -> Any:
        _note(self)
        return super().request(*args, **kwargs)  # type: ignore[misc]


class _Adapter(requests.adapters.HTTPAdapter):
    """Makes connections that an attempt knows of. `ConnectionCls` is where urllib3 lets others say what is made."""

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        if not issubclass(pool.ConnectionCls, _Noted):
            pool.ConnectionCls = type("NotedConnection", (_Noted, pool.ConnectionCls), {})
        return pool


def _session() -> requests.Session:
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(pool_maxsize=CONNECTIONS))
    return session


def _note(connection: Any) -> None:
    attempt = _current.get()
    if attempt is not None:
        attempt.uses(connection)


def _check_whole(response: requests.Response) -> None:
    """Raises: NoAnswer: the answer was cut off.

    A connection that ends within the header section looks like one without a body to `http.client`, and perhaps half
    a Location with it. So what is neither framed nor JSON does not count.
    """
    length, body = response.headers.get("Content-Length", ""), response.content
    if response.status_code in _BODILESS:
        return
    if length.isdecimal():
        is_whole = "Content-Encoding" in response.headers or len(body) == int(length)
    elif "Transfer-Encoding" in response.headers:
        is_whole = True
    else:
        is_whole = bool(body) and (response.status_code >= 300 or _is_json(body))
    if response.status_code < 200 or not is_whole:
        raise NoAnswer("the answer was cut off")


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _reason(error: BaseException) -> str:
    """What is at the bottom of an error of requests, without the wrappings."""
    deepest, waiting, seen = error, [error], 0
    while waiting and seen < 50:
        each, seen = waiting.pop(0), seen + 1
        deepest = each
        inner = [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]
        waiting += [other for other in inner if isinstance(other, BaseException)]
    return f"{type(deepest).__name__}: {str(deepest)[:200]}"
