"""Sends requests through a connected socket and reads what matters of the answers.

`requests` forms and sends a request, but it never chooses an address: it is handed the socket.
Its `Session` is left out on purpose. A session reads proxies and passwords from the environment, and even with
redirects off it reads the whole body of a 3xx answer into memory; its adapter does neither.
No text of a receiver may enter an error: whoever gave us the address could read other people's services by it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import socket
from collections.abc import Mapping
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
from aj.egress.wire import Wire
from aj.errors import DeliveryFailed, causes
from aj.interim import FinalResponse

BODY_MOST_BYTES = 65_536

_exchanging: ContextVar[bool] = ContextVar("aj_exchanging", default=False)


def _is_not_of_an_exchange(record: logging.LogRecord) -> bool:
    return not _exchanging.get()


# urllib3 logs whole URLs, and as warnings what it cannot read of an answer: a callback's query is a secret of its
# owner, and the answer a stranger's text. What it logs for others in this process is left alone.
for _name in ("urllib3.connection", "urllib3.connectionpool", "urllib3.response"):
    logging.getLogger(_name).addFilter(_is_not_of_an_exchange)


class _Connection(urllib3.connection.HTTPConnection):
    """HTTP over a wire that is connected already, and speaks TLS already where it must. It is opened once."""

    response_class = FinalResponse

    def __init__(self, *args: Any, wire: Wire, default_port: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._wire = wire
        self.default_port = default_port  # type: ignore[misc]  # which the Host header leaves out

    def connect(self) -> None:
        self.sock, self.auto_open = self._wire, 0


class _Adapter(requests.adapters.HTTPAdapter):
    """Sends through one given wire and has no other way out, so neither proxy nor redirect can exist."""

    def __init__(self, target: Target, wire: Wire) -> None:
        super().__init__()
        self._pool = urllib3.HTTPConnectionPool(target.host, target.port)
        self._pool.ConnectionCls = functools.partial(  # type: ignore[assignment]
            _Connection, wire=wire, default_port=DEFAULT_PORTS[target.scheme]
        )

    def init_poolmanager(self, *_: Any, **__: Any) -> None:
        """There is none, so a version of requests that passed us by would fail instead of finding its own way."""

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self._pool

    def cert_verify(self, *_: Any, **__: Any) -> None:
        """Nothing is left to do: where the wire speaks TLS, the certificate was verified."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        return request.path_url

    def build_response(self, req: Any, resp: Any) -> Any:
        """urllib3's answer as it is. Reading a hostile receiver's cookies can take seconds and 100 MB."""
        return resp

    def close(self) -> None:
        self._pool.close()


class Line:
    """A connection to one receiver, and HTTP over it: for one attempt at a time, and for one after the other."""

    def __init__(self, target: Target, connected: socket.socket, deadline: Deadline) -> None:
        self._wire = Wire(connected, deadline)
        self._adapter = _Adapter(target, self._wire)
        self._is_spent = False

    @property
    def has_heard(self) -> bool:
        """Whether a byte has come since the last request began."""
        return self._wire.heard_bytes > 0

    def may_be_kept(self) -> bool:
        """Whether another request may follow: the last answer was read to its exact end, and nothing came with it."""
        return not self._is_spent and self._wire.is_in_step()

    def is_silent(self) -> bool:
        """Whether nothing has come since, nor has the receiver hung up."""
        return self._wire.is_silent()

    def close(self) -> None:
        """Hangs up."""
        self._adapter.close()
        self._wire.hang_up()

    def exchange(self, target: Target, headers: Mapping[str, str], body: bytes, deadline: Deadline) -> tuple[int, str]:
        """POSTs; gives the answer's status and its Retry-After, empty where it has none.

        The answer counts from the end of its header section on: a body that drips, breaks off or does not end
        changes nothing. At most 64 KiB of it are read, so that an honest receiver sees its answer taken.

        Raises: DeliveryFailed: no answer in time (`timeout`), or something that is none (`protocol`).
        """
        self._wire.begin(deadline)
        self._is_spent, quiet = True, _exchanging.set(True)
        try:
            answer: urllib3.HTTPResponse = self._adapter.send(_request(target, headers, body), stream=True)  # type: ignore[assignment]
            if answer.status < 200:
                raise DeliveryFailed(
                    "protocol", f"{target.endpoint} answered {answer.status}, which is not a final status"
                )
            with contextlib.suppress(Exception):
                answer.read(BODY_MOST_BYTES, decode_content=False)
                self._is_spent = not (answer.closed and _is_framed_clearly(answer))
            answer.release_conn()
            return answer.status, answer.headers.get("Retry-After", "")
        except DeliveryFailed:
            raise
        except Exception as error:
            # All of it, since the bytes of a stranger pass through many parsers, which raise many things.
            # Its text is dropped, and so is its traceback: they may quote what the receiver sent.
            raise _failure(error, target, deadline) from None
        finally:
            _exchanging.reset(quiet)


@functools.lru_cache(1024)
def _as_sent(url: str) -> str:
    """The URL as `requests` spells it, remembered, since that takes as long as all the rest of a request."""
    request = requests.PreparedRequest()
    request.prepare_url(url, None)
    return str(request.url)


def _request(target: Target, headers: Mapping[str, str], body: bytes) -> requests.PreparedRequest:
    """The request, without what `requests` would look for in cookies and passwords."""
    request = requests.PreparedRequest()
    request.prepare_method("POST")
    request.url = _as_sent(target.url)
    request.prepare_headers(headers)
    request.prepare_body(body, None)
    return request


def _is_framed_clearly(answer: urllib3.HTTPResponse) -> bool:
    """Whether all who read the answer agree where it ends.

    Source: RFC 9112, section 6.3.
    """
    codings, lengths = answer.headers.getlist("Transfer-Encoding"), answer.headers.getlist("Content-Length")
    if answer.status == HTTPStatus.NO_CONTENT:
        return not codings and not lengths
    if codings:
        return not lengths and [each.lower() for each in codings] == ["chunked"]
    return len(lengths) == 1 and lengths[0].isascii() and lengths[0].isdecimal()


def _failure(error: Exception, target: Target, deadline: Deadline) -> DeliveryFailed:
    found = list(causes(error))
    if deadline.is_over() or any(isinstance(each, TimeoutError | urllib3.exceptions.TimeoutError) for each in found):
        return deadline.missed()
    innermost = type(found[-1]).__name__
    return DeliveryFailed("protocol", f"the connection to {target.endpoint} brought no HTTP answer ({innermost})")
