"""The line between a worker and its work-horse: whole messages, each of a kind, over a pair of sockets.

It knows no job. The worker's end never blocks, since a work-horse may hang at any moment; the work-horse's does.
Any thread may speak, and an exception may strike in the middle of it, as an alarm's does: no message is torn by that.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading

from aj.clock import monotonic_s

_HEAD = struct.Struct(">cQ")
_CHUNK_BYTES = 1 << 18
# What stands where a length should, as text does, is more than this.
_LONGEST_BYTES = 1 << 40

Message = tuple[bytes, bytes]


class Line:
    """One end. `is_open` is False once the other end is gone and all that it said was heard."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._heard, self._unsent = bytearray(), bytearray()
        self._sent: list[int] = []
        self._poll = select.poll()
        self._is_sending = False
        # Whoever holds it is the only one that speaks. A signal's handler may speak while its own thread does.
        self.lock = threading.RLock()
        self.is_open = True

    @classmethod
    def pair(cls) -> tuple[Line, Line]:
        """The worker's end, and the work-horse's."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        return cls(ours), cls(theirs)

    def close(self) -> None:
        self.is_open = False
        self._heard.clear()
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
        """Sends a message; what cannot be sent at once, or was cut off by an exception, goes with what comes next."""
        message = _HEAD.pack(kind, len(body)) + body
        with self.lock:
            self._unsent += message
            self._send()

    def hear(self, at_most_s: float | None = None) -> list[Message]:
        """The messages that have come. Waits for a whole one, for `at_most_s` seconds at most, and takes in what is
        there in any case; none where there is none, or the other end has gone. Raises: ValueError: it is none."""
        ends_at_s = None if at_most_s is None else monotonic_s() + at_most_s
        while True:
            messages = self._whole_messages()
            if messages or not self.is_open:
                return messages
            left_ms = None if ends_at_s is None else max(0.0, ends_at_s - monotonic_s()) * 1000
            events = self._wait(left_ms)
            if events & select.POLLOUT:
                self._send()
            if events & ~select.POLLOUT:
                self._receive()
            if not events:
                return []

    def _wait(self, at_most_ms: float | None) -> int:
        """What can be done now, or is wrong; 0 where nothing is in time. `select` could not, beside 1024 open files."""
        self._poll.register(self._end, select.POLLIN | select.POLLOUT if self._unsent else select.POLLIN)
        return sum(events for _, events in self._poll.poll(at_most_ms))

    def _send(self) -> None:
        with self.lock:
            if self._is_sending:
                return  # it is a handler that speaks, and the one that it has interrupted goes on with it
            self._is_sending = True
            try:
                self._send_all()
            except BlockingIOError:
                pass
            except OSError:
                self._unsent.clear()  # nobody is there to hear it, which `hear` finds out
            finally:
                self._is_sending = False

    def _send_all(self) -> None:
        """Apart, since in Python 3.13 what strikes as a loop goes back passes by each `try` and `with` around the loop
        in its own function: the lock would be held for ever.
        """
        while self._unsent:
            self._send_some()

    def _send_some(self) -> None:
        """An exception of a handler strikes after a call. What was sent must be noted by then: so one call does both,
        and the note is taken up here without any, by whoever comes next.
        """
        if not self._sent:
            self._sent.extend(map(self._end.send, (self._unsent[:_CHUNK_BYTES],)))
        del self._unsent[: self._sent[0]]
        del self._sent[0]

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
            if length > _LONGEST_BYTES:
                raise ValueError("this is no message")
            if len(self._heard) < _HEAD.size + length:
                break
            messages.append((kind, bytes(self._heard[_HEAD.size : _HEAD.size + length])))
            del self._heard[: _HEAD.size + length]
        return messages
