"""A loopback proxy before a web server that cuts one connection at a byte that a test names, and no other."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.processes import free_port


class HttpCutter:
    """`cut_next` is for the connection that comes next; `connections` counts all of them.

    `port` is where the server is now. `request_bytes` and `answer_bytes` are what went through on all of them together.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._most: tuple[int | None, int | None] = (None, None)
        self.connections = self.request_bytes = self.answer_bytes = 0
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_next(self, *, request_bytes: int | None = None, answer_bytes: int | None = None) -> None:
        """Lets so many bytes through, of the request or of the answer, and then ends the connection on both sides."""
        self._most = (request_bytes, answer_bytes)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            (request_bytes, answer_bytes), self._most = self._most, (None, None)
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            ends = (client, server)
            threading.Thread(target=self._pass, args=(client, server, request_bytes, ends), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, answer_bytes, ends), daemon=True).start()

    def _pass(
        self, source: socket.socket, sink: socket.socket, most: int | None, ends: tuple[socket.socket, ...]
    ) -> None:
        """Passes `most` bytes on, or all; then both connections are over."""
        with contextlib.suppress(OSError):
            while most is None or most > 0:
                data = source.recv(2**16)
                if not data:
                    break
                data = data if most is None else data[:most]
                most = None if most is None else most - len(data)
                if source is ends[0]:
                    self.request_bytes += len(data)
                else:
                    self.answer_bytes += len(data)
                sink.sendall(data)
        for each in ends:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def http_cutter(port: int) -> Iterator[HttpCutter]:
    """A proxy before the web server at this loopback port."""
    cutter = HttpCutter(port)
    try:
        yield cutter
    finally:
        cutter.close()
