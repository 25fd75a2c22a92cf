"""The thread in which one request is made, and how it is left when time is over.

A connection of urllib3 tells its attempt that it is used, so that it can be shut under a thread that nobody waits for.
Nothing here knows what is asked.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import requests
import requests.adapters

from aj.client.call import Answer, NoAnswer
from aj.client.errors import ClientError
from aj.interim import FinalResponse

# So many are kept for the next request; urllib3 warns of each one more, and a job that is waited for takes one.
CONNECTIONS = 256
# What an adapter of requests has itself, and of what kinds that may be which another class adds.
_KNOWN = frozenset({*requests.adapters.HTTPAdapter.__attrs__, "proxy_manager", "poolmanager"})
_PLAIN = (str, bytes, int, float, os.PathLike, ssl.SSLContext)
_current: contextvars.ContextVar[Attempt | None] = contextvars.ContextVar("aj_client_attempt", default=None)


def within(left_s: float, send: Callable[[], Answer]) -> Answer | None:
    """What `send` gives in a thread of its own, or None where `left_s` seconds were not enough.

    Raises: whatever `send` raises, and what a signal raises meanwhile; NoAnswer: no thread can be started, as while
        Python shuts down.
    """
    attempt = Attempt(send)
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(attempt.run,), name="aj-client", daemon=True)
    try:
        _start(thread)
        has_ended = attempt.ended.wait(min(left_s, threading.TIMEOUT_MAX))
    finally:
        attempt.leave()
    return attempt.outcome() if has_ended else None


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as error:  # such as "can't create new thread at interpreter shutdown", which passes no more
        raise NoAnswer(str(error), may_heal="shutdown" not in str(error)) from error


class Attempt:
    """What goes on in the thread of one attempt, and how whoever waits for it leaves it."""

    def __init__(self, send: Callable[[], Answer]) -> None:
        self._send = send
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._connection: Any = None
        self._is_left = False
        self.ended = threading.Event()

    def run(self) -> None:
        _current.set(self)
        try:
            self._answer = self._send()
        except BaseException as error:
            self._error = error
            with contextlib.suppress(Exception):  # what was left in it would be taken for the answer of another request
                self._connection.close()
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
        """What came of it. Raises: whatever sending raised."""
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer


class _Noted:
    """Laid over a connection of urllib3: tells the attempt of this thread about it, before it is used."""

    response_class = FinalResponse

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


def make_session() -> requests.Session:
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(pool_maxsize=CONNECTIONS))
    return session


def session_like(theirs: requests.Session) -> requests.Session:
    """A session that does what `theirs` does, over connections of its own: what a child needs after a fork.

    What makes connections is made again by the adapters themselves, so that those of other classes go on as they are.

    Raises: ClientError: it has an adapter that does not tell how.
    """
    cookies, adapters = copy.copy(theirs.cookies), copy.copy(theirs.adapters)
    for prefix, adapter in theirs.adapters.items():
        adapters[prefix] = _adapter_like(adapter)
    made: requests.Session = _twin(theirs, cookies=cookies, adapters=adapters)
    return made


def _adapter_like(theirs: Any) -> Any:
    """An adapter that does what `theirs` does, over connections of its own. Raises: ClientError: it does not tell how.

    One that keeps connections in an attribute of its own, as those for Unix sockets do, would share them.
    """
    refusal = f"after a fork, make the client and its session anew: {theirs!r} cannot be made again"
    if not isinstance(theirs, requests.adapters.HTTPAdapter):
        raise ClientError(refusal)
    made = _twin(theirs, proxy_manager={})
    for name, value in (vars(theirs) | _in_slots(theirs)).items():
        if name not in _KNOWN and not _is_plain(value):
            raise ClientError(f"{refusal}, since its {name!r} may hold connections")
    made.init_poolmanager(made._pool_connections, made._pool_maxsize, block=made._pool_block)
    if type(made.poolmanager) is not type(theirs.poolmanager):
        raise ClientError(f"{refusal}, since its 'poolmanager' was put there")
    # What was given to `init_poolmanager`, such as a TLS context, is kept here only.
    made.poolmanager.connection_pool_kw.update(theirs.poolmanager.connection_pool_kw)
    made.poolmanager.pool_classes_by_scheme = theirs.poolmanager.pool_classes_by_scheme
    return made


def _twin(of: Any, **instead: Any) -> Any:
    """Another one with the same attributes but for `instead`: copying, as requests does it, leaves many of them out."""
    made = object.__new__(type(of))
    made.__dict__.update(vars(of), **instead)
    for name, value in _in_slots(of).items():
        object.__setattr__(made, name, value)
    return made


def _in_slots(of: Any) -> dict[str, Any]:
    state: Any = object.__getstate__(of)
    return state[1] if isinstance(state, tuple) else {}


def _is_plain(value: Any) -> bool:
    """Whether no connection can be in it."""
    if isinstance(value, dict):
        return all(map(_is_plain, (*value, *value.values())))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, _PLAIN)


def _note(connection: Any) -> None:
    attempt = _current.get()
    if attempt is not None:
        attempt.uses(connection)
