"""A receiver of webhooks that costs next to nothing: `python -m bench.receiver PORT FILE`, one thread.

Answers 204 to whatever comes and notes a line for each: when it came, in ms since the epoch, and whether it was signed,
then the body. It checks no signature: hooksink does, but here the deliverer is measured.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from aj.clock import now_ms
from bench.wire import END, LOOPBACK, content_length

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


def main(arguments: Sequence[str]) -> int:
    listener = socket.create_server((LOOPBACK, int(arguments[0])), backlog=128)
    file = os.open(Path(arguments[1]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    came: dict[int, bytes] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                selector.register(connection, selectors.EVENT_READ, connection)
                came[connection.fileno()] = b""
            else:
                _read(key.data, selector, came, file)


def _read(connection: socket.socket, selector: selectors.BaseSelector, came: dict[int, bytes], file: int) -> None:
    try:
        piece = connection.recv(65_536)
    except OSError:
        piece = b""
    if not piece:
        del came[connection.fileno()]
        selector.unregister(connection)
        connection.close()
        return
    data = came[connection.fileno()] + piece
    head, end, body = data.partition(END)
    lowered = head.lower()
    if not end or len(body) < content_length(lowered):
        came[connection.fileno()] = data
        return
    came[connection.fileno()] = b""
    is_signed = b"\r\nwebhook-signature: v1," in lowered
    os.write(file, b"%d %d %s\n" % (now_ms(), is_signed, body))
    connection.sendall(ANSWER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
