"""A loopback proxy before a store that can lose the store's replies, and let connections go dead."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import free_port


class CuttingProxy:
    """`replies_to_lose` counts down: instead of each such reply the client sees its connection end."""

    def __init__(self, target: Path) -> None:
        self.replies_to_lose = 0
        self._clients: set[socket.socket] = set()
        self._hushed: set[socket.socket] = set()
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        port = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{port}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def hush(self) -> None:
        """From now on clients hear nothing over the connections that there are, and do not see them end either."""
        self._hushed |= self._clients

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # else a thread that accepts would go on
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._target))
            self._clients.add(client)
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
            threading.Thread(target=self._pass_back, args=(server, client), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with server:
            try:
                while sent := client.recv(2**16):
                    server.sendall(sent)
                server.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        with client:
            try:
                while reply := server.recv(2**16):
                    if client in self._hushed:
                        continue
                    if self.replies_to_lose:
                        self.replies_to_lose -= 1
                        client.shutdown(socket.SHUT_RDWR)
                        return
                    client.sendall(reply)
            except OSError:
                return


@contextmanager
def cutting_proxy(target: Path) -> Iterator[CuttingProxy]:
    """A proxy before the unix socket `target`."""
    proxy = CuttingProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
