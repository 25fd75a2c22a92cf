"""The one door of `aj check` to the network: plays one request over a connection of its own.

Requests may be what no well-behaved client sends, so they are written byte by byte; answers are read by `http.client`.
Nothing is followed, kept, taken from a proxy or from a file of passwords.
However the other side behaves, an exchange ends within its time, reads a bounded answer, and raises nothing.
Only the look-up of a name is not ours to bound: it takes the time that the resolver gives it.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from urllib.parse import urlsplit

from aj.check.exchange import Answer, Exchange, Request
from aj.clock import monotonic_s
from aj.interim import FinalResponse
from aj.version import __version__

MAX_ANSWER_BYTES = 2 * 1024 * 1024
REFUSED, NO_SUCH_HOST = "the connection was refused", "the name of the host leads nowhere"
NOT_TRUSTED, NO_TLS = "its certificate is not trusted", "it does not speak TLS as we do"
NOBODY_THERE = (REFUSED, NO_SUCH_HOST, NOT_TRUSTED, NO_TLS)  # what failures begin with where no request gets through
REST_TIMEOUT_S = 1.0
_CHUNK_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock; `left_s` is never more than what remains until it."""

    at_s: float
    whole_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(monotonic_s() + seconds, seconds)

    def left_s(self) -> float:
        """Raises: TimeoutError: nothing is left."""
        left_s = self.at_s - monotonic_s()
        if left_s <= 0:
            raise TimeoutError
        return left_s


def play(request: Request, timeout_s: float) -> Exchange:
    """What came of `request` within `timeout_s` in all. Raises nothing: what went wrong stands in the exchange."""
    began_s = monotonic_s()
    deadline = Deadline.after(timeout_s)
    answer, failure = None, ""
    try:
        answer = _played(request, deadline)
    except TimeoutError:
        failure = f"no whole answer within {timeout_s:g} s"
    except ConnectionRefusedError:
        failure = REFUSED
    except socket.gaierror:
        failure = NO_SUCH_HOST
    except _NoTls as error:
        failure = str(error)
    except ssl.SSLError as error:
        failure = f"TLS failed: {error.reason or error}"
    except (OSError, HTTPException, ValueError) as error:
        failure = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Exchange(request, answer, failure, monotonic_s() - began_s)


def _played(request: Request, deadline: Deadline) -> Answer:
    parts = urlsplit(request.url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    data = _bytes_of(request)
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(_dial(host, port, deadline))
        if secure:
            connection = stack.enter_context(_secured(connection, host, deadline))
        _send(connection, data, deadline)
        if request.framing == "cut" and not secure:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        return _read(request.method, connection, deadline)


def _dial(host: str, port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first address of the host that takes one; all have one time together. Raises: OSError."""
    refusal: OSError | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # a part of the name is empty or too long
        raise socket.gaierror from None
    for family, kind, protocol, _, address in found:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(deadline.left_s())
            connection.connect(address)
            return connection
        except OSError as error:
            connection.close()
            refusal = error
    raise refusal or OSError("the host has no address")


class _NoTls(Exception):
    """TLS was not agreed upon, and will not be at the next try either."""


def _secured(connection: socket.socket, host: str, deadline: Deadline) -> ssl.SSLSocket:
    """The connection with TLS over it, to who proves to be this host. Raises: _NoTls, OSError."""
    connection.settimeout(deadline.left_s())
    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        hint = "SSL_CERT_FILE names a file with your own authority"
        raise _NoTls(f"{NOT_TRUSTED} ({error.verify_message.rstrip('.')}); {hint}") from None
    except ssl.SSLEOFError:  # hung up, which may be otherwise at the next try
        raise
    except ssl.SSLError as error:
        raise _NoTls(f"{NO_TLS} ({error.reason or error})") from None


def _send(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    left = memoryview(data)
    # Who refuses early may close before all has come, and has answered all the same. The last two are so over TLS.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
        while left:
            connection.settimeout(deadline.left_s())
            left = left[connection.send(left[:_CHUNK_BYTES]) :]


def _bytes_of(request: Request) -> bytes:
    parts = urlsplit(request.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    fields = [("Host", parts.netloc.rpartition("@")[2]), ("User-Agent", f"aj-check/{__version__}"), *request.fields]
    fields.append(("Connection", "close"))
    body = request.body or b""
    if request.body is not None and request.framing in ("length", "cut"):
        fields.append(("Content-Length", str(len(body) + (request.framing == "cut"))))
    if request.framing == "chunked":
        fields.append(("Transfer-Encoding", "chunked"))
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    head = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    if any("\r" in line or "\n" in line for line in head):
        raise ValueError("a request line or field would hold a line end")
    return "\r\n".join([*head, "", ""]).encode("utf-8", "surrogateescape") + body


def _read(method: str, connection: socket.socket, deadline: Deadline) -> Answer:
    incoming = _Incoming(connection, deadline)
    with FinalResponse(_Source(incoming), method=method) as response:  # type: ignore[arg-type]
        response.begin()
        body, rest = bytearray(), b""
        if method == "HEAD" or response.status in (204, 304):
            incoming.deadline = Deadline.after(min(REST_TIMEOUT_S, deadline.left_s()))
            # What comes here is a mistake of the server; a silent one may take its time to close.
            with contextlib.suppress(OSError):
                rest = response.fp.read1(_CHUNK_BYTES)
        else:
            _read_body(response, body)
        return Answer(response.status, response.reason, tuple(response.getheaders()), bytes(body), len(rest))


def _read_body(response: HTTPResponse, body: bytearray) -> None:
    while piece := response.read(_CHUNK_BYTES):
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise HTTPException(f"the answer is over {MAX_ANSWER_BYTES} bytes")
    if response.length:
        raise HTTPException(f"the answer ended {response.length} bytes before its Content-Length")


class _Incoming(io.RawIOBase):
    """What comes over a connection; each wait is bounded by the time of the whole exchange."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection, self.deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._connection.settimeout(self.deadline.left_s())
        return self._connection.recv_into(buffer)


@dataclass(frozen=True, slots=True)
class _Source:
    """What `http.client` wants of a socket: a file to read from."""

    incoming: _Incoming

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self.incoming)
