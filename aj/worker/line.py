"""The line between a worker and its work-horse: whole messages, each of a kind, over a pair of sockets.

It knows no job. The worker's end never blocks, since a work-horse may hang at any moment; the work-horse's does.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct

from aj.clock import monotonic_s

_HEAD = struct.Struct(">cQ")
_CHUNK_BYTES = 1 << 18

Message = tuple[bytes, bytes]


class Line:
    """One end. `is_open` is False once the other end is gone and all that it said was heard."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._heard, self._unsent = bytearray(), bytearray()
        self.is_open = True

    @classmethod
    def pair(cls) -> tuple[Line, Line]:
        """The worker's end, and the work-horse's."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        return cls(ours), cls(theirs)

    def close(self) -> None:
        self.is_open = False
        self._end.close()

    def say_no_more(self) -> None:
        """Lets the other end know that nothing is to come."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def hang_up(self, at_most_s: float) -> None:
        """Says no more, waits until the other end has gone, for `at_most_s` seconds at most, and closes."""
        ends_at_s = monotonic_s() + at_most_s
        self.say_no_more()
        while self.is_open and (left_s := ends_at_s - monotonic_s()) > 0:
            self.hear(left_s)
        self.close()

    def say(self, kind: bytes, body: bytes = b"") -> None:
        """Sends a message; what a worker's end cannot send at once goes with `hear`."""
        self._unsent += _HEAD.pack(kind, len(body))
        self._unsent += body
        self._send()

    def hear(self, at_most_s: float | None = None) -> list[Message]:
        """The messages that have come. Waits for a whole one, for `at_most_s` seconds at most, and takes in what is
        there in any case; none where there is none, or the other end has gone."""
        ends_at_s = None if at_most_s is None else monotonic_s() + at_most_s
        while True:
            messages = self._whole_messages()
            if messages or not self.is_open:
                return messages
            left_s = None if ends_at_s is None else max(0.0, ends_at_s - monotonic_s())
            readable, writable, _ = select.select([self._end], [self._end] if self._unsent else [], [], left_s)
            if writable:
                self._send()
            if readable:
                self._receive()
            if not readable and not writable:
                return []

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._end.send(self._unsent[:_CHUNK_BYTES])]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()  # nobody is there to hear it, which `hear` finds out

    def _receive(self) -> None:
        try:
            chunk = self._end.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._heard += chunk
        self.is_open = bool(chunk)

    def _whole_messages(self) -> list[Message]:
        messages = []
        while len(self._heard) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._heard)
            if len(self._heard) < _HEAD.size + length:
                break
            messages.append((kind, bytes(self._heard[_HEAD.size : _HEAD.size + length])))
            del self._heard[: _HEAD.size + length]
        return messages
