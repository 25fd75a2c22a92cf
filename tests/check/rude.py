"""Servers that are no servers: each connection is handed to a function, which says or withholds what it likes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def rude(behave: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """The base URL of a server that behaves so; the event is set when the test is over."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                behave(connection, over)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def saying(data: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Reads a little, says this and hangs up."""

    def behave(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(data)

    return behave


def hang(connection: socket.socket, over: threading.Event) -> None:
    """Says nothing, ever."""
    over.wait()


def drip(connection: socket.socket, over: threading.Event) -> None:
    """Says a good answer, one byte at a time, for ever."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 1000000\r\n\r\n")
    while not over.wait(0.02):
        connection.sendall(b" ")


def pour(connection: socket.socket, over: threading.Event) -> None:
    """Sends more than anybody wants to read."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    while not over.is_set():
        connection.sendall(piece)


def less_than_nothing(connection: socket.socket, over: threading.Event) -> None:
    """Promises a chunk of -1 bytes, which some take for all that ever comes, and sends that."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")
    while not over.is_set():
        connection.sendall(b"x" * 0x10000)


def more_and_more_interim(connection: socket.socket, over: threading.Event) -> None:
    """Promises an answer again and again."""
    connection.recv(65536)
    while not over.wait(0.001):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
