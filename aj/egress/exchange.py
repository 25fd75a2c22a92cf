"""Sends one request through a connected socket and reads what matters of the answer.

`requests` forms and sends the request, but it never chooses an address: it is handed the socket.
Its `Session` is left out on purpose. A session reads proxies and passwords from the environment, and even with
redirects off it reads the whole body of a 3xx answer into memory; its adapter does neither.
No text of a receiver may enter an error: whoever gave us the address could read other people's services by it.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import logging
import socket
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

import requests
import requests.adapters
import urllib3
import urllib3.connection
import urllib3.exceptions

from aj.egress.deadline import Deadline
from aj.egress.url import DEFAULT_PORTS, Target
from aj.errors import DeliveryFailed

BODY_MOST_BYTES = 65_536

_exchanging: ContextVar[bool] = ContextVar("aj_exchanging", default=False)


def _is_not_of_an_exchange(record: logging.LogRecord) -> bool:
    return not _exchanging.get()


# urllib3 logs whole URLs, and as warnings what it cannot read of an answer: a callback's query is a secret of its
# owner, and the answer a stranger's text. What it logs for others in this process is left alone.
for _name in ("urllib3.connection", "urllib3.connectionpool", "urllib3.response"):
    logging.getLogger(_name).addFilter(_is_not_of_an_exchange)


class _Answer(http.client.HTTPResponse):
    """Passes over every interim answer before the final one, where http.client passes over 100 only.

    101 stays: nothing final comes after it, but another protocol, which we have not asked for.

    Source: RFC 9110, section 15.2. `_read_status` is not in the promises of http.client; a test holds that it is used.
    """

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        is_interim = HTTPStatus.SWITCHING_PROTOCOLS < status < HTTPStatus.OK
        return version, HTTPStatus.CONTINUE if is_interim else status, reason


class _Connection(urllib3.connection.HTTPConnection):
    """HTTP over a socket that is connected already, and speaks TLS already where it must."""

    response_class = _Answer

    def __init__(self, *args: Any, connected: socket.socket, default_port: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connected = connected
        self.default_port = default_port  # type: ignore[misc]  # which the Host header leaves out

    def connect(self) -> None:
        self.sock = self._connected


class _Adapter(requests.adapters.HTTPAdapter):
    """Sends through one given socket and has no other way out, so neither proxy nor redirect can exist."""

    def __init__(self, target: Target, connected: socket.socket) -> None:
        super().__init__()
        self._pool = urllib3.HTTPConnectionPool(target.host, target.port)
        self._pool.ConnectionCls = functools.partial(  # type: ignore[assignment]
            _Connection, connected=connected, default_port=DEFAULT_PORTS[target.scheme]
        )

    def init_poolmanager(self, *_: Any, **__: Any) -> None:
        """There is none, so a version of requests that passed us by would fail instead of finding its own way."""

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self._pool

    def cert_verify(self, *_: Any, **__: Any) -> None:
        """Nothing is left to do: where the socket speaks TLS, the certificate was verified."""

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        """The little that is used. Reading a hostile receiver's cookies can take seconds and 100 MB."""
        response = requests.Response()
        response.status_code, response.raw = resp.status, resp
        response.headers["Retry-After"] = resp.headers.get("Retry-After", "")
        return response

    def close(self) -> None:
        self._pool.close()


def exchange(
    target: Target, connected: socket.socket, headers: Mapping[str, str], body: bytes, deadline: Deadline
) -> tuple[int, str]:
    """POSTs through `connected`; gives the answer's status and its Retry-After, empty where it has none.

    The answer counts from the end of its header section on: a body that drips, breaks off or does not end
    changes nothing. At most 64 KiB of it are read, so that an honest receiver sees its answer taken.

    Raises: DeliveryFailed: no answer in time (`timeout`), or something that is none (`protocol`).
    """
    adapter, quiet = _Adapter(target, connected), _exchanging.set(True)
    try:
        request = requests.Request("POST", target.url, headers=dict(headers), data=body).prepare()
        with contextlib.closing(adapter.send(request, stream=True, timeout=deadline.left_s())) as response:
            # A header section that the watchdog cut off looks complete to http.client.
            deadline.left_s()
            status = response.status_code
            if status < 200:
                raise DeliveryFailed("protocol", f"{target.endpoint} answered {status}, which is not a final status")
            with contextlib.suppress(Exception):
                response.raw.read(BODY_MOST_BYTES, decode_content=False)
            return status, response.headers["Retry-After"]
    except DeliveryFailed:
        raise
    except Exception as error:
        # All of it, since the bytes of a stranger pass through many parsers, which raise many things.
        # Its text is dropped, and so is its traceback: they may quote what the receiver sent.
        raise _failure(error, target, deadline) from None
    finally:
        adapter.close()
        _exchanging.reset(quiet)


def _failure(error: Exception, target: Target, deadline: Deadline) -> DeliveryFailed:
    causes = list(_causes(error))
    if deadline.is_over() or any(isinstance(each, TimeoutError | urllib3.exceptions.TimeoutError) for each in causes):
        return deadline.missed()
    innermost = type(causes[-1]).__name__
    return DeliveryFailed("protocol", f"the connection to {target.endpoint} brought no HTTP answer ({innermost})")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """`error`, then what it wraps in any of the ways of requests and urllib3, outermost first."""
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and not any(each is other for other in seen):
            seen.append(each)
            yield each
            waiting += [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]
