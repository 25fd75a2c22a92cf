"""Resolves a host and connects to one of its addresses, within a deadline.

What is connected to is always an address that was handed in, never a name: names are resolved once, in
`look_up`, so that the caller can judge all addresses before any of them is used.
"""

from __future__ import annotations

import functools
import ipaddress
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Sequence

import requests.utils

from aj.egress.address import Address
from aj.egress.deadline import Deadline
from aj.egress.url import Target
from aj.errors import DeliveryFailed

# Takes a host name and a port, gives the name's addresses as text, and raises OSError where there are none.
Resolver = Callable[[str, int], Sequence[str]]

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


def dial(addresses: Sequence[Address], target: Target, deadline: Deadline) -> tuple[socket.socket, Address]:
    """A socket that is connected to the first of `addresses` that answers, and that address.

    Each address gets its share of the time that is left, so that a dead one does not use up all of it.

    Raises: DeliveryFailed: none answers (`connect`), or none in time (`timeout`).
    """
    failure: OSError | None = None
    for position, address in enumerate(addresses):
        left_s = deadline.left_s()
        share_s = min(left_s, max(CONNECT_LEAST_S, left_s / (len(addresses) - position)))
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        try:
            return _connect(family, str(address), target.port, share_s), address
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


@functools.cache
def tls_context() -> ssl.SSLContext:
    """The rules for every TLS connection: TLS 1.2 or later, the authorities of `requests`, the right name.

    It is made once, since reading the authorities takes longer than most deliveries, and never changed
    again, since threads share it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which demands a certificate and compares its name
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(cafile=requests.utils.DEFAULT_CA_BUNDLE_PATH)
    return context


def secure(connected: socket.socket, target: Target, deadline: Deadline) -> socket.socket:
    """`connected` itself for http; for https a socket that took it over and has verified the host's name.

    Raises: DeliveryFailed: the handshake failed (`tls`), or did not end in time (`timeout`).
    """
    connected.settimeout(deadline.left_s())
    if target.scheme == "http":
        return connected
    try:
        return tls_context().wrap_socket(connected, server_hostname=target.host)
    except (OSError, ValueError) as error:
        if deadline.is_over() or isinstance(error, TimeoutError):
            raise deadline.missed() from None
        # OpenSSL's own words, such as CERTIFICATE_VERIFY_FAILED and self-signed certificate.
        words = [getattr(error, name, None) for name in ("reason", "verify_message")]
        reason = ", ".join(filter(None, words)) or type(error).__name__
        raise DeliveryFailed("tls", f"no TLS with {target.endpoint}: {reason}") from None
