"""A gunicorn worker that answers a quick request where it arrives, and gives any other to a thread.

gunicorn's `gthread` hands each request to a thread and its connection back. Threads that all want the interpreter get
in each other's way, and now and then an answer waits long for its turn; docs/performance.md has the figures. Here the
process's own loop answers what it knows to be quick: a request of ours that has arrived whole and does not ask to wait.
A thread gets all others, and gets all of them for a moment after an answer took long, as where the store hangs. So no
client can hold the loop: not by sending slowly, nor by reading slowly.

Knows gunicorn's insides, on purpose only here; tests hold that they are as we think.
"""

# gunicorn has no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import re
import selectors
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from aj.clock import monotonic_s

# The largest request that is answered in the loop; it fits the buffer that the kernel has for it.
QUICK_MOST_BYTES = 16_384
SLOW_S = 0.05
SLOW_FOR_S = 1.0

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,5})[ \t]*(?=\r\n)", re.IGNORECASE)
# A request with one of these may wait, for us or for its sender, or has a body whose end is not known from its head.
_MAY_WAIT = re.compile(
    rb"\r\n(?:prefer|transfer-encoding|expect|upgrade)|content-length.*content-length", re.IGNORECASE | re.DOTALL
)


class Quick:
    """Judges what has arrived on a connection: whether it is one whole request, below `paths`, that will not wait."""

    def __init__(self, paths: list[str]) -> None:
        below = b"|".join(re.escape(path.encode("ascii")) for path in paths)
        self._head = re.compile(rb"(?:GET|HEAD|POST|DELETE) (?:" + below + rb")(?:[/?][!-~]*)? HTTP/1\.1\r\n")

    def __call__(self, arrived: bytes) -> bool:
        if self._head.match(arrived) is None:
            return False
        head, end, body = arrived.partition(b"\r\n\r\n")
        if not end or _MAY_WAIT.search(head):
            return False
        length = _LENGTH.search(head + b"\r\n")
        return len(body) == (int(length[1]) if length else 0)


class PatientSocket(socket.socket):
    """A client's socket that never makes its writer wait: what the kernel does not take at once is kept in `unsent`."""

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.is_patient = False
        self.unsent: list[bytes] = []

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        if not self.is_patient:
            return super().sendall(data, flags)
        sent = 0
        if not self.unsent:
            with contextlib.suppress(BlockingIOError):
                sent = self.send(data, flags | socket.MSG_DONTWAIT)
        if sent < len(data):
            self.unsent.append(bytes(memoryview(data)[sent:]))
        return None


class Done:
    """The result of a request, in the form in which gunicorn looks at it."""

    def __init__(self, result: Any) -> None:
        self.result: Callable[[], Any] = lambda: result

    def cancelled(self) -> bool:
        return False


class DirectWorker(ThreadWorker):  # type: ignore[misc]
    """`gthread`, with requests that `is_quick` knows answered in the loop. Without TLS and HTTP/2 only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_quick: Callable[[bytes], bool] | None = None
        self._threads_until_s = float("-inf")

    def accept(self, listener: socket.socket) -> None:
        """Takes a client; a thread has to do with it only once it has sent something."""
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        conn = TConn(self.cfg, PatientSocket(accepted), address, listener.getsockname())
        conn.set_timeout()
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def enqueue_req(self, conn: Any) -> None:
        """Answers a quick request; gives another to a thread."""
        if not self._is_quick(conn):
            super().enqueue_req(conn)
            return
        conn.sock.is_patient = True
        result = self._handle_timed(conn)
        conn.sock.is_patient = False
        if conn.sock.unsent:
            later = self.tpool.submit(self._send_rest, conn, result)
            later.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))
        else:
            self.finish_request(conn, Done(result))

    def _is_quick(self, conn: Any) -> bool:
        if self.is_quick is None or self.cfg.is_ssl or monotonic_s() < self._threads_until_s:
            return False
        if conn.parser is not None and conn.parser.unreader.buf.getvalue():
            return False  # what is to be read has begun to be read already
        try:
            return self.is_quick(conn.sock.recv(QUICK_MOST_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False

    def _handle_timed(self, conn: Any) -> Any:
        began_s = monotonic_s()
        try:
            return self.handle(conn)
        finally:
            ended_s = monotonic_s()
            if ended_s - began_s > SLOW_S:
                self._threads_until_s = ended_s + SLOW_FOR_S

    def _send_rest(self, conn: Any, result: Any) -> Any:
        """Sends what the client did not take at once, however slowly it reads. In a thread."""
        rest, conn.sock.unsent = conn.sock.unsent, []
        try:
            for data in rest:
                conn.sock.sendall(data)
        except OSError:
            return False
        return result
