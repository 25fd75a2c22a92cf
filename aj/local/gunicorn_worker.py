"""A gunicorn worker that answers a quick request where it arrives, and gives any other to a thread.

gunicorn's `gthread` hands each request to a thread and its connection back. Threads that all want the interpreter get
in each other's way. Here the process's own loop answers what it knows to be quick: a submission, or a look at one job,
that has arrived whole and does not ask to wait. A thread gets all others, and gets all of them for a while where
answers take long, as when the store hangs. So no client can hold the loop: not by sending slowly, nor by reading
slowly, nor by not letting go of its connection.

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
from concurrent.futures import Future
from functools import partial
from typing import Any
from urllib.parse import quote

from flask import Flask
from gunicorn.workers.gthread import DEFAULT_WORKER_DATA_TIMEOUT, TConn, ThreadWorker  # type: ignore[import-untyped]

from aj.clock import monotonic_s

# The largest request that is answered in the loop; it fits the buffer that the kernel has for it.
QUICK_MOST_BYTES = 16_384
# Where answers take longer, in the mean of the last of them, threads wait better than the loop: for so many times as
# long as the last one took. So it is with a hook of the app that is slow, and with a store that is far away or hangs;
# one answer that took long since the machine is busy says little.
SLOW_S = 0.006
LAST = 16
PAUSE_TIMES = 20

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


class DirectWorker(ThreadWorker):  # type: ignore[misc]
    """`gthread`, with quick requests to the API of the app it serves answered in the loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_quick: Callable[[bytes], bool] | None = None
        self._mean_s = 0.0
        self._paused_until_s = float("-inf")

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

    def on_client_socket_readable(self, conn: Any, client: Any) -> None:
        """Answers a quick request on a connection that stays as it is, which gunicorn would take up and lay down."""
        if not self.alive or not self._may_answer(conn):
            super().on_client_socket_readable(conn, client)
            return
        done = self._answer(conn)
        self.keepalived_conns.remove(conn)
        if done.done() and done.result() and not conn.parser.unreader.buf.getvalue():
            conn.set_timeout()
            self.keepalived_conns.append(conn)
        else:
            self.poller.unregister(client)
            self._finish_later(conn, done)

    def enqueue_req(self, conn: Any) -> None:
        """Answers a quick request; gives another to a thread."""
        if self._may_answer(conn):
            self._finish_later(conn, self._answer(conn))
        else:
            super().enqueue_req(conn)

    def _answer(self, conn: Any) -> Future[Any]:
        """Answers a request in the loop; the result, as of gunicorn's `handle`, may come when a thread has sent all."""
        began_s = monotonic_s()
        conn.sock.is_patient = True
        result = self.handle(conn)
        conn.sock.is_patient = False
        try:
            rest = conn.sock.send_what_goes()
        except OSError:
            rest, result = b"", False
        self._note_time(began_s, monotonic_s())
        if rest:
            return self.tpool.submit(self._send_rest, conn, rest, result)  # type: ignore[no-any-return]
        done: Future[Any] = Future()
        done.set_result(result)
        return done

    def _finish_later(self, conn: Any, done: Future[Any]) -> None:
        if done.done():
            self.finish_request(conn, done)
        else:
            done.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def _may_answer(self, conn: Any) -> bool:
        if self._is_quick is None or monotonic_s() < self._paused_until_s:
            return False
        if conn.parser is not None and conn.parser.unreader.buf.getvalue():
            return False  # what is to be read has begun to be read already
        try:
            return self._is_quick(conn.sock.recv(QUICK_MOST_BYTES, socket.MSG_PEEK))
        except OSError:
            return False

    def _note_time(self, began_s: float, ended_s: float) -> None:
        took_s = ended_s - began_s
        self._mean_s += (took_s - self._mean_s) / LAST
        if self._mean_s > SLOW_S:
            self._mean_s, self._paused_until_s = 0.0, ended_s + PAUSE_TIMES * took_s

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
