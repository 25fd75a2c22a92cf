"""Answers as `http.client` reads them, with two rules that it lacks: whoever asks by HTTP has them from here.

It passes over 100 only where every interim answer is to be passed over, and takes a chunk of -1 bytes for one without
end. Knows nothing of who asks, or what. The methods are not in the promises of http.client; tests hold that they are
used, by it and by urllib3.
"""

from __future__ import annotations

import http.client
import re
from http import HTTPStatus

_LINE_MOST_BYTES = 65_536
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}[ \t]*(?:;.*)?\r?\n?", re.DOTALL)


def chunk_size(line: bytes) -> int:
    """The size that stands before a chunk: hexadecimal digits only, where `int` takes a sign and more.

    Source: RFC 9112, section 7.1. Raises: ValueError: it is none.
    """
    if not _CHUNK_SIZE.fullmatch(line):
        raise ValueError("a chunk without a size")
    return int(line.partition(b";")[0], 16)


class FinalResponse(http.client.HTTPResponse):
    """The final answer, whose body never takes more memory than its reader asks for."""

    def _read_status(self) -> tuple[str, int, str]:
        """Passes over interim answers. 101 stays: nothing final comes after it, but a protocol that nobody asked for.

        Source: RFC 9110, section 15.2.
        """
        version, status, reason = super()._read_status()  # type: ignore[misc]
        is_interim = HTTPStatus.SWITCHING_PROTOCOLS < status < HTTPStatus.OK
        return version, HTTPStatus.CONTINUE if is_interim else status, reason

    def _read_next_chunk_size(self) -> int:
        """The size of the next chunk. Raises: ValueError: there is none."""
        line = self.fp.readline(_LINE_MOST_BYTES + 1)
        try:
            return chunk_size(line if len(line) <= _LINE_MOST_BYTES else b"")
        except ValueError:
            self._close_conn()  # type: ignore[attr-defined]
            raise

    def _safe_read(self, amt: int) -> bytes:
        """Reads exactly so much. urllib3 reads the sizes of chunks itself, and comes here with what it takes for one.

        Raises: IncompleteRead: it is less than nothing, which would mean all that ever comes.
        """
        if amt < 0:
            raise http.client.IncompleteRead(b"")
        return super()._safe_read(amt)  # type: ignore[misc,no-any-return]
