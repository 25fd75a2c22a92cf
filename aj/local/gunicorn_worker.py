"""A gunicorn worker that answers a quick request where it arrives, and gives any other to a thread.

gunicorn's `gthread` hands each request to one of its threads and its connection back. Ours are many, since some hold
requests that wait, and threads that want the interpreter at once get in each other's way. Here the process's own loop
answers what is known to be quick: a submission, or a look at one job, that has arrived whole and does not ask to wait.
A thread gets all others, and gets all of them for a while where the store is far away or hangs. So no client can hold
the loop: not by sending slowly, nor by reading slowly, nor by not letting go of its connection.

Knows gunicorn's insides, on purpose only here; tests hold that they are as we think.
"""

# gunicorn has no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import math
import re
import selectors
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any
from urllib.parse import quote

from flask import Flask
from gunicorn.workers.gthread import DEFAULT_WORKER_DATA_TIMEOUT, TConn, ThreadWorker  # type: ignore[import-untyped]

from aj.clock import monotonic_s

# The largest request that is answered in the loop; it fits the buffer that the kernel has for it.
QUICK_MOST_BYTES = 16_384
# In a batch of many requests the loop looks for new clients after so many of them. gunicorn takes one for each batch,
# so that the last of many that come at once would wait for many batches: 350 ms instead of 110 with 64 clients.
LOOK_EVERY = 4
# Threads wait better than the loop for a store that is far away: where the quickest of so many answers takes longer
# than this. Any other may be slow since the machine is busy.
LAST, FAR_S, FAR_PAUSE_S = 64, 0.004, 10.0
# An answer that took so long met a store that hangs; the loop is left alone for so many times as long.
HANG_S, HANG_PAUSE_TIMES = 0.25, 20
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


class Pace:
    """Whether answers are quick, by how long those took that were given in the loop."""

    def __init__(self) -> None:
        self._count, self._least_s = 0, math.inf
        self._paused_until_s = -math.inf

    def is_quick(self) -> bool:
        return monotonic_s() >= self._paused_until_s

    def note(self, began_s: float) -> None:
        """An answer that began then is ready."""
        ended_s = monotonic_s()
        took_s = ended_s - began_s
        self._count, self._least_s = self._count + 1, min(self._least_s, took_s)
        if took_s > HANG_S:
            self._paused_until_s = ended_s + HANG_PAUSE_TIMES * took_s
        elif self._count == LAST and self._least_s > FAR_S:
            self._paused_until_s = ended_s + FAR_PAUSE_S
        if self._count == LAST:
            self._count, self._least_s = 0, math.inf


class DirectWorker(ThreadWorker):  # type: ignore[misc]
    """`gthread`, with quick requests to the API of the app it serves answered in the loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_quick: Callable[[bytes], bool] | None = None
        self._pace = Pace()

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

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        for at, (key, _) in enumerate(self.poller.select(timeout), 1):
            key.data(key.fileobj)
            if at % LOOK_EVERY == 0 and self._accepting and self.nr_conns < self.worker_connections:
                for listener in self.sockets:
                    self.accept(listener)

    def on_client_socket_readable(self, conn: Any, client: Any) -> None:
        """Answers a quick request on a connection that stays as it is, which gunicorn would take up and lay down."""
        if not self.alive or not self._may_answer(conn):
            super().on_client_socket_readable(conn, client)
            return
        rest, result = self._answer(conn)
        self.keepalived_conns.remove(conn)
        if result and not rest and not conn.parser.unreader.buf.getvalue():
            conn.set_timeout()
            self.keepalived_conns.append(conn)
        else:
            self.poller.unregister(client)
            self._finish(conn, rest, result)

    def enqueue_req(self, conn: Any) -> None:
        """Answers a quick request; gives another to a thread."""
        if self._may_answer(conn):
            self._finish(conn, *self._answer(conn))
        else:
            super().enqueue_req(conn)

    def _may_answer(self, conn: Any) -> bool:
        if self._is_quick is None or not self._pace.is_quick():
            return False
        if conn.parser is not None and conn.parser.unreader.buf.getvalue():
            return False  # what is to be read has begun to be read already
        try:
            return self._is_quick(conn.sock.recv(QUICK_MOST_BYTES, socket.MSG_PEEK))
        except OSError:
            return False

    def _answer(self, conn: Any) -> tuple[bytes, Any]:
        """Answers a request without waiting for its client; gives what is still to be sent, and what `handle` gives."""
        began_s, conn.sock.is_patient = monotonic_s(), True
        try:
            result = self.handle(conn)
        finally:
            conn.sock.is_patient = False
            self._pace.note(began_s)
        try:
            return conn.sock.send_what_goes(), result
        except OSError:
            return b"", False

    def _finish(self, conn: Any, rest: bytes, result: Any) -> None:
        done: Future[Any] = Future()
        if rest:
            done = self.tpool.submit(self._send_rest, conn, rest, result)
            done.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))
        else:
            done.set_result(result)
            self.finish_request(conn, done)

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
