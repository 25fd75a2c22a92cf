"""A connected socket as `http.client` uses it: each wait is bounded by the total time of the attempt.

It counts what comes in, so that it can be said whether an answer was read to its exact end and nothing came after it.
It never dials, and it is closed by its owner only: `http.client` may say that it is done with it, and no more.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl

import urllib3.util

from aj.egress.deadline import Deadline


class Wire:
    """One connection, in clear or TLS. Call `begin` before each exchange."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._connected = connected
        self.begin(deadline)

    def begin(self, deadline: Deadline) -> None:
        """From here on the time of this attempt counts, and what it hears."""
        self._deadline, self._unsent = deadline, bytearray()
        self.heard_bytes = self.unread_bytes = 0
        self.has_ended = False

    def hang_up(self) -> None:
        """Closes the connection."""
        self._connected.close()

    def is_in_step(self) -> bool:
        """Whether all that came was asked for and read, and more may be asked."""
        pending_bytes = self._connected.pending() if isinstance(self._connected, ssl.SSLSocket) else 0
        return not (self.has_ended or self.unread_bytes or pending_bytes)

    def is_silent(self) -> bool:
        """Whether nothing has come since, the end of the connection included."""
        return not urllib3.util.wait_for_read(self._connected, 0)

    def receive_into(self, buffer: memoryview) -> int:
        """How many bytes came, 0 at the end. Raises: DeliveryFailed: the time is over; OSError."""
        self._send()
        self._connected.settimeout(self._deadline.left_s())
        received_bytes = self._connected.recv_into(buffer)
        self.heard_bytes += received_bytes
        self.has_ended = self.has_ended or not received_bytes
        return received_bytes

    def _send(self) -> None:
        """Sends what is to be sent. The `sendall` of a socket with TLS would take the whole time for each record."""
        left, self._unsent = memoryview(self._unsent), bytearray()
        # One that closes early may have answered all the same, and what can be read tells.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while left:
                self._connected.settimeout(self._deadline.left_s())
                left = left[self._connected.send(left) :]

    # -- what http.client and urllib3 ask of a socket --------------------------------------------------------

    def sendall(self, data: bytes) -> None:
        """Sends with the first read: head and body in one packet, so that an exchange costs 240 µs instead of 280."""
        self._unsent += data

    def makefile(self, mode: str) -> _Reader:
        return _Reader(_Incoming(self))

    def fileno(self) -> int:
        return self._connected.fileno()

    def settimeout(self, timeout_s: float | None) -> None:
        """Nothing: the deadline is asked before each wait."""

    def close(self) -> None:
        """The other side will close the connection, or has: nothing more can be asked through it."""
        self.has_ended = True


class _Incoming(io.RawIOBase):
    """What comes through a wire, as a raw stream."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self.wire.receive_into(buffer)

    def tell(self) -> int:
        return self.wire.heard_bytes


class _Reader(io.BufferedReader):
    """Reads ahead, and at its end tells the wire how many bytes it took that nobody has read."""

    raw: _Incoming

    def close(self) -> None:
        if not self.closed:
            self.raw.wire.unread_bytes = self.raw.tell() - self.tell()
        super().close()
