"""A gunicorn worker that keeps quick requests apart from those that may wait.

gunicorn's `gthread` gives each request to one of its threads. Ours are many, since some hold requests that wait, and
many threads that want the interpreter at once get in each other's way: the more there are, the longer the last of them
waits for its turn. Here a few threads answer what is known to be quick: a submission, or a look at one job, that has
arrived whole and does not ask to wait. All others go to the many. So no client can hold up the quick ones: not by
sending slowly, nor by reading slowly, nor by not letting go of its connection.

Knows gunicorn's insides, on purpose only here; tests hold that they are as we think.
"""

# gunicorn has no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import re
import selectors
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import quote

from flask import Flask
from gunicorn.workers.gthread import DEFAULT_WORKER_DATA_TIMEOUT, TConn, ThreadWorker  # type: ignore[import-untyped]

from aj.clock import monotonic_s

# The largest request that is called quick; it fits the buffer that the kernel has for it.
QUICK_MOST_BYTES = 16_384
# Enough to answer while others wait for the store.
QUICK_THREADS = 4

# Written more strictly than gunicorn reads it, so that whatever passes ends where we think it ends.
# A request with one of these fields may wait, for us or for its sender, or has a body of unknown length.
_FIELD = rb"(?:(?!(?i:prefer|expect|upgrade|transfer-encoding|content-length):)[0-9A-Za-z-]++:[\t -~\x80-\xff]*+\r\n)*+"
_LENGTH = rb"(?:(?i:content-length):[\t ]*+([0-9]{1,5})[\t ]*+\r\n" + _FIELD + rb")?"


class Quick:
    """Judges whether what has arrived on a connection is one whole request that will not wait.

    That is a submission to one of `paths`, or a look at a job of it.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        jobs = b"(?:" + b"|".join(re.escape(quote(path).encode("ascii")) for path in paths) + b")"
        target = rb"(?:POST " + jobs + rb"|(?:GET|HEAD) " + jobs + rb"/[0-9a-f-]{36}(?:/result)?)(?:\?[!-~]*)?"
        self._head = re.compile(target + rb" HTTP/1\.1\r\n" + _FIELD + _LENGTH + rb"\r\n")

    def __call__(self, arrived: bytes) -> bool:
        head = self._head.match(arrived)
        return head is not None and len(arrived) - head.end() == int(head[1] or 0)


class PatientSocket(socket.socket):
    """A client's socket. While it `is_patient` it makes nobody wait: what is sent is only kept, in `unsent`.

    So head and body of an answer go out in one piece too. To read what has not arrived is an error meanwhile. The
    socket must not be blocking when that begins.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.is_patient = False
        self.unsent: list[bytes] = []

    def setblocking(self, flag: bool, /) -> None:
        if not self.is_patient:
            super().setblocking(flag)

    def settimeout(self, value: float | None, /) -> None:
        if not self.is_patient:
            super().settimeout(value)

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        if not self.is_patient:
            return super().sendall(data, flags)
        self.unsent.append(bytes(data))
        return None

    def send_what_goes(self) -> bytes:
        """Sends what is kept; gives what the kernel does not take at once. Raises: OSError: the client is gone."""
        rest, self.unsent = b"".join(self.unsent), []
        with contextlib.suppress(BlockingIOError):
            rest = rest[self.send(rest) :]
        return rest


class QuickLaneWorker(ThreadWorker):  # type: ignore[misc]
    """`gthread`, with threads apart for quick requests to the API of the app it serves."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_quick: Callable[[bytes], bool] | None = None
        self._lane = ThreadPoolExecutor(QUICK_THREADS, "aj-quick")

    def load_wsgi(self) -> None:
        """Learns from the app where its API is. With TLS or another protocol threads answer everything."""
        super().load_wsgi()
        is_plain = not self.cfg.is_ssl and self.cfg.protocol == "http" and self.cfg.http2_cleartext == "off"
        if is_plain and isinstance(self.wsgi, Flask):
            submissions = {f"{name}.submit" for name in self.wsgi.extensions.get("aj", {})}
            paths = [rule.rule for rule in self.wsgi.url_map.iter_rules() if rule.endpoint in submissions]
            if paths:
                self._is_quick = Quick(paths)

    def accept(self, listener: socket.socket) -> None:
        """Takes a client; a thread has to do with it only once it has sent something."""
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        conn = TConn(self.cfg, PatientSocket(accepted), address, listener.getsockname())
        conn.timeout = monotonic_s() + max(self.cfg.keepalive, DEFAULT_WORKER_DATA_TIMEOUT)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def enqueue_req(self, conn: Any) -> None:
        """Gives a quick request to one of the few threads, another to one of the many."""
        if self._is_for_lane(conn):
            self._then(self._lane.submit(self._answer, conn), self._finish_quick, conn)
        else:
            super().enqueue_req(conn)

    def _then(self, task: Future[Any], go_on: Callable[[Any, Any], None], conn: Any) -> None:
        """Has the loop go on with a connection when a thread is done with it."""
        task.add_done_callback(lambda done: self.method_queue.defer(go_on, conn, done))

    def _is_for_lane(self, conn: Any) -> bool:
        if self._is_quick is None:
            return False
        if conn.parser is not None and conn.parser.unreader.buf.getvalue():
            return False  # what is to be read has begun to be read already
        try:
            return self._is_quick(conn.sock.recv(QUICK_MOST_BYTES, socket.MSG_PEEK))
        except OSError:
            return False

    def _answer(self, conn: Any) -> tuple[bytes, Any]:
        """Answers a request without waiting for its client; gives what is still to be sent, and what `handle` gives."""
        conn.sock.is_patient = True
        try:
            result = self.handle(conn)
        finally:
            conn.sock.is_patient = False
        try:
            return conn.sock.send_what_goes(), result
        except OSError:
            return b"", False

    def _finish_quick(self, conn: Any, done: Future[tuple[bytes, Any]]) -> None:
        rest, result = done.result() if done.exception() is None else (b"", False)
        if rest:
            self._then(self.tpool.submit(self._send_rest, conn, rest, result), self.finish_request, conn)
        else:
            finished: Future[Any] = Future()
            finished.set_result(result)
            self.finish_request(conn, finished)

    def _send_rest(self, conn: Any, rest: bytes, result: Any) -> Any:
        """Sends what the client did not take at once, however slowly it reads. In a thread."""
        try:
            conn.sock.setblocking(True)
            conn.sock.sendall(rest)
        except OSError:
            return False
        return result

    def finish_request(self, conn: Any, done: Any) -> None:
        """As gunicorn does, but a thread waits for the client that is to let go of its connection."""
        if done.exception() is None and done.result():
            super().finish_request(conn, done)
        else:
            closed = self.tpool.submit(conn.close, graceful=True)
            closed.add_done_callback(lambda _: self.method_queue.defer(self._forget_one))

    def _forget_one(self) -> None:
        self.nr_conns -= 1

    def _cap_keepalive(self, deadline: float) -> None:
        """When the process is to stop, who has sent nothing yet is given no longer than who is between two requests."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)
