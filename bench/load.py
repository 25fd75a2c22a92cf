"""The load generator, a process of its own: `python -m bench.load WISH`, one JSON object in, one out.

It keeps some connections busy with one request each, over and over, opens anew what the server closes, and says what
it has cost itself. One thread and no framework, so that it takes little from what it measures.
"""

from __future__ import annotations

import json
import resource
import selectors
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from aj.clock import monotonic_s
from bench.wire import TIMEOUT_S, connect, reply_in

MOST_ERRORS = 20


@dataclass(frozen=True, slots=True)
class Wish:
    """What to send where: for `seconds`, or exactly `most` requests where that is not 0."""

    port: int
    request: str
    connections: int = 16
    seconds: float = 1.0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of it; `errors` counts replies other than 2xx and lost connections, `cpu_s` is the generator's own.

    `first_error` is the beginning of the first reply that was no 2xx.
    """

    requests: int
    errors: int
    seconds: float
    p50_ms: float
    p99_ms: float
    cpu_s: float
    first_error: str


@dataclass(slots=True)
class Line:
    """One connection and the reply that it waits for; `is_fresh` says that it has had none yet."""

    socket: socket.socket
    began_s: float
    data: bytes = b""
    is_fresh: bool = True


@dataclass(slots=True)
class Course:
    """What has happened so far."""

    sent: int = 0
    errors: int = 0
    first_error: str = ""
    took_s: list[float] = field(default_factory=list)

    @property
    def ended(self) -> int:
        return len(self.took_s) + self.errors


class Drive:
    """Sends what `wish` asks for."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._request = wish.request.encode()
        self._course = Course()
        self._selector = selectors.DefaultSelector()

    def __call__(self) -> Driven:
        began_s = monotonic_s()
        cpu_s = _cpu_s()
        for _ in range(min(self._wish.connections, self._wish.most or self._wish.connections)):
            self._open()
        until_s = began_s + (TIMEOUT_S * 10 if self._wish.most else self._wish.seconds)
        while self._goes_on() and monotonic_s() < until_s:
            for key, _ in self._selector.select(0.1):
                self._read(key.data)
        took = sorted(self._course.took_s) or [0.0]
        return Driven(
            requests=len(self._course.took_s),
            errors=self._course.errors,
            seconds=monotonic_s() - began_s,
            p50_ms=1000 * took[len(took) // 2],
            p99_ms=1000 * took[int(len(took) * 0.99)],
            cpu_s=_cpu_s() - cpu_s,
            first_error=self._course.first_error,
        )

    def _goes_on(self) -> bool:
        return self._course.errors < MOST_ERRORS and not 0 < self._wish.most <= self._course.ended

    def _open(self) -> None:
        """A new connection with a request on it. What connecting takes is part of the request's time."""
        began_s = monotonic_s()
        line = Line(connect(self._wish.port, None), began_s)
        self._selector.register(line.socket, selectors.EVENT_READ, line)
        self._send(line)

    def _send(self, line: Line) -> None:
        self._course.sent += 1
        line.data = b""
        try:
            line.socket.sendall(self._request)
        except OSError:
            self._lose(line)

    def _read(self, line: Line) -> None:
        try:
            piece = line.socket.recv(65_536)
        except OSError:
            piece = b""
        if not piece:
            self._lose(line)
            return
        line.data += piece
        reply = reply_in(line.data)
        if reply is None:
            return
        if reply.is_success:
            self._course.took_s.append(monotonic_s() - line.began_s)
        else:
            self._course.errors += 1
            self._course.first_error = self._course.first_error or line.data[:500].decode("utf-8", "replace")
        line.is_fresh = False
        self._go_on_with(line, reply.closes)

    def _go_on_with(self, line: Line, is_closed: bool) -> None:
        is_over = 0 < self._wish.most <= self._course.sent
        if is_closed or is_over:
            self._close(line)
        if is_over:
            return
        if is_closed:
            self._open()
            return
        line.began_s = monotonic_s()
        self._send(line)

    def _lose(self, line: Line) -> None:
        """The server ended the connection: between two requests that is its right, before the first an error."""
        self._close(line)
        if line.is_fresh or line.data:
            self._course.errors += 1
        self._course.sent -= 1
        self._open()

    def _close(self, line: Line) -> None:
        self._selector.unregister(line.socket)
        line.socket.close()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str]) -> int:
    print(json.dumps(asdict(Drive(Wish(**json.loads(arguments[0])))())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
