"""Finds a checked address of a target, connects to it, and sends one request through that connection.

`requests` forms and sends the request, but it never chooses an address: it is handed a connected socket.
Its `Session` is left out on purpose. A session reads proxies and passwords from the environment, and even with
redirects off it reads the whole body of a 3xx answer into memory; its adapter does neither.
No text of a receiver may enter an error: whoever gave us the address could read other people's services by it.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import requests
import requests.adapters
import requests.utils
import urllib3
import urllib3.connection
import urllib3.exceptions

from aj.egress.address import Address
from aj.egress.deadline import Deadline
from aj.egress.url import Target
from aj.errors import DeliveryFailed

# Takes a host name and a port, gives the name's addresses as text, and raises OSError where there are none.
Resolver = Callable[[str, int], Sequence[str]]

BODY_MOST_BYTES = 65_536
CONNECT_LEAST_S = 1.0


def system_resolver(host: str, port: int) -> list[str]:
    """The addresses of `host` as this system sees them, in the order in which to try them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def look_up(resolve: Resolver, target: Target, deadline: Deadline) -> list[Address]:
    """Every address of the target's host; the resolver is asked once.

    A resolver cannot be interrupted, so it runs in a thread of its own, which is left behind where it
    hangs and ends by itself when the resolver gives up.

    Raises: DeliveryFailed: there is none (`dns`), or no answer came in time (`timeout`).
    """
    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(target.host, target.port))
        except Exception as error:  # whatever it is, the name has no address
            answers.put(error)

    asking = threading.Thread(target=ask, name="aj-egress-resolve", daemon=True)
    asking.start()
    try:
        answer = answers.get(timeout=deadline.left_s())
    except queue.Empty:
        raise deadline.missed() from None
    asking.join()
    if isinstance(answer, Exception) or not answer:
        raise DeliveryFailed("dns", f"{target.host} has no address")
    try:
        return [ipaddress.ip_address(text) for text in answer]
    except ValueError:
        raise DeliveryFailed("dns", f"{target.host} has an address that cannot be read") from None


def dial(addresses: Sequence[Address], target: Target, deadline: Deadline) -> socket.socket:
    """A socket that is connected to the first of `addresses` that answers.

    Each address gets its share of the time that is left, so that a dead one does not use up all of it.

    Raises: DeliveryFailed: none answers (`connect`), or none in time (`timeout`).
    """
    failure: OSError | None = None
    for position, address in enumerate(addresses):
        left_s = deadline.left_s()
        share_s = min(left_s, max(CONNECT_LEAST_S, left_s / (len(addresses) - position)))
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        try:
            return _connect(family, str(address), target.port, share_s)
        except OSError as error:
            failure = error
    if deadline.is_over() or isinstance(failure, TimeoutError):
        raise deadline.missed()
    reason = failure.strerror if failure is not None else None
    raise DeliveryFailed("connect", f"{target.endpoint} cannot be reached: {reason or 'no connection'}")


def _connect(family: socket.AddressFamily, address: str, port: int, timeout_s: float) -> socket.socket:
    connected = socket.socket(family, socket.SOCK_STREAM)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(timeout_s)
        connected.connect((address, port))
    except BaseException:
        connected.close()
        raise
    return connected


def tls_context() -> ssl.SSLContext:
    """The rules for every TLS connection: the authorities that `requests` trusts, and the name must match.

    It is made once and shared, since reading the authorities takes longer than most deliveries.
    """
    context = urllib3.util.ssl_.create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
    context.load_verify_locations(cafile=requests.utils.DEFAULT_CA_BUNDLE_PATH)
    return context


class _Plain(urllib3.connection.HTTPConnection):
    """HTTP over a socket that is already connected."""

    def __init__(self, *args: Any, connected: socket.socket, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connected = connected

    def _new_conn(self) -> socket.socket:
        return self._connected


class _Secure(urllib3.connection.HTTPSConnection):
    """HTTPS over a socket that is already connected; the handshake, with its name check, is urllib3's."""

    def __init__(self, *args: Any, connected: socket.socket, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connected = connected

    def _new_conn(self) -> socket.socket:
        return self._connected


class _OneConnection(requests.adapters.HTTPAdapter):
    """Sends through one given socket and has no other way out, so neither proxy nor redirect can exist."""

    def __init__(self, target: Target, connected: socket.socket, context: ssl.SSLContext) -> None:
        super().__init__(pool_connections=1, pool_maxsize=1)
        self._pool: urllib3.HTTPConnectionPool
        if target.scheme == "https":
            self._pool = urllib3.HTTPSConnectionPool(target.host, target.port, ssl_context=context)
            self._pool.ConnectionCls = functools.partial(_Secure, connected=connected)  # type: ignore[assignment]
        else:
            self._pool = urllib3.HTTPConnectionPool(target.host, target.port)
            self._pool.ConnectionCls = functools.partial(_Plain, connected=connected)  # type: ignore[assignment]

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self._pool

    def cert_verify(self, *_: Any, **__: Any) -> None:
        """Nothing is left to do: the context that the pool was given verifies."""

    def close(self) -> None:
        self._pool.close()
        super().close()


def exchange(
    target: Target,
    connected: socket.socket,
    context: ssl.SSLContext,
    headers: Mapping[str, str],
    body: bytes,
    deadline: Deadline,
) -> tuple[int, str | None]:
    """POSTs through `connected`; gives the answer's status and its Retry-After.

    The answer counts from the end of its header section on: a body that drips, breaks off or does not end
    changes nothing. At most 64 KiB of it are read, so that an honest receiver sees its answer taken.

    Raises: DeliveryFailed: `timeout`, `tls` or `protocol`.
    """
    adapter = _OneConnection(target, connected, context)
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
            return status, response.headers.get("Retry-After")
    except DeliveryFailed:
        raise
    except Exception as error:
        # All of it, since the bytes of a stranger pass through many parsers, which raise many things.
        # Its text is dropped, and so is its traceback: they may quote what the receiver sent.
        raise _failure(error, target, deadline) from None
    finally:
        adapter.close()


def _failure(error: Exception, target: Target, deadline: Deadline) -> DeliveryFailed:
    causes = list(_causes(error))
    if deadline.is_over() or any(isinstance(each, TimeoutError | urllib3.exceptions.TimeoutError) for each in causes):
        return deadline.missed()
    for each in causes:
        if isinstance(each, ssl.SSLError):
            # These are OpenSSL's own words, such as CERTIFICATE_VERIFY_FAILED and self-signed certificate.
            words = [each.reason, getattr(each, "verify_message", None)]
            return DeliveryFailed("tls", f"no TLS with {target.endpoint}: {', '.join(filter(None, words)) or 'failed'}")
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
