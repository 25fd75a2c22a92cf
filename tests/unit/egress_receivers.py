"""Receivers on loopback, each a thread with a script of what it does to one connection.

They end with the `with` block: the listening socket is closed and every open connection is cut.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from aj.egress import Egress
from aj.settings import Allowed, Settings

Script = Callable[["Receiver", socket.socket], None]


@dataclass
class Receiver:
    """What one receiver saw. `stop` is set when the test is over; scripts that drip wait on it."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    open: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@contextlib.contextmanager
def receiving(
    script: Script, context: ssl.SSLContext | None = None, family: int = socket.AF_INET
) -> Iterator[Receiver]:
    """A receiver that plays `script` to each connection, in a thread per connection."""
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
    listening.listen(64)
    receiver = Receiver(listening.getsockname()[1])

    def play(accepted: socket.socket) -> None:
        with contextlib.suppress(OSError):
            talking = accepted if context is None else context.wrap_socket(accepted, server_side=True)
            receiver.open.append(talking)
            with talking:
                script(receiver, talking)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listening.accept()
                receiver.connections += 1
                receiver.open.append(accepted)
                threading.Thread(target=play, args=(accepted,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield receiver
    finally:
        receiver.stop.set()
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for each in receiver.open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        accepting.join(5)


def read_request(receiver: Receiver, talking: socket.socket) -> bytes:
    """One request, head and body, which is also kept in `receiver.requests`."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = talking.recv(65_536)
        if not chunk:
            return received
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += talking.recv(65_536)
    receiver.requests.append(head + b"\r\n\r\n" + body)
    return receiver.requests[-1]


def answering(answer: bytes) -> Script:
    """Reads the request, sends `answer`, closes."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.sendall(answer)

    return script


def dripping(head: bytes, drop: bytes, every_s: float = 0.05) -> Script:
    """Reads the request, sends `head`, then `drop` again and again until the test is over."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.sendall(head)
        while not receiver.stop.wait(every_s):
            talking.sendall(drop)

    return script


def flooding(head: bytes, drop: bytes) -> Script:
    """Reads the request, sends `head`, then `drop` without end and as fast as it is taken."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.sendall(head)
        while not receiver.stop.is_set():
            talking.sendall(drop)

    return script


def silent(receiver: Receiver, talking: socket.socket) -> None:
    """Accepts and reads, never answers."""
    read_request(receiver, talking)
    receiver.stop.wait(30)


def deaf(receiver: Receiver, talking: socket.socket) -> None:
    """Accepts, never reads, never answers."""
    receiver.stop.wait(30)


def allowing(text: str) -> tuple[Allowed, ...]:
    """The setting AJ_CALLBACK_ALLOW, as a process would read it."""
    return Settings.from_env({"AJ_CALLBACK_ALLOW": text}).callback_allow


def loopback_egress(timeout_s: float = 5.0) -> Egress:
    """An egress that may call anything on loopback."""
    return Egress(allowing("127.0.0.0/8,[::1]"), timeout_s, "aj/test")


def wait_until(claim: Callable[[], bool], within_s: float = 5.0) -> bool:
    """Whether `claim` became true in time."""
    ends_at_s = time.monotonic() + within_s
    while not claim():
        if time.monotonic() > ends_at_s:
            return False
        threading.Event().wait(0.01)
    return True
