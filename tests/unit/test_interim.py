"""Chunks whose sizes are none: whoever reads an answer, by http.client or by urllib3, takes no memory for them."""

from __future__ import annotations

import http.client
import io
from dataclasses import dataclass

import pytest
import urllib3

from aj.interim import FinalResponse

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MUCH_BYTES = 1 << 20


@dataclass
class _Source:
    """What `http.client` wants of a socket."""

    file: io.BytesIO

    def makefile(self, mode: str) -> io.BytesIO:
        return self.file


def _answer(body: bytes) -> tuple[FinalResponse, io.BytesIO]:
    file = io.BytesIO(HEAD + body)
    response = FinalResponse(_Source(file), method="GET")  # type: ignore[arg-type]
    response.begin()
    return response, file


@pytest.mark.parametrize("size", [b"-1", b"-ff", b"+5", b"0x5", b"1_0", b"", b" ", b"five", b"5" * 17])
def test_a_size_that_is_no_hexadecimal_number_ends_the_answer(size: bytes) -> None:
    """With what `int` takes for a number too; nothing behind it is read."""
    response, file = _answer(b"3\r\nabc\r\n" + size + b"\r\n" + b"x" * MUCH_BYTES)
    at = file.tell()
    with pytest.raises(http.client.IncompleteRead):
        list(iter(lambda: response.read(100), b""))
    assert file.closed or file.tell() - at < 1000


def test_urllib3_reads_no_chunk_of_less_than_nothing() -> None:
    """It reads the sizes itself, and would read to the end of all that comes."""
    response, file = _answer(b"-1\r\n" + b"x" * MUCH_BYTES)
    reader = urllib3.HTTPResponse(response, preload_content=False, headers=dict(response.getheaders()), version=11)
    with pytest.raises(urllib3.exceptions.HTTPError):
        list(reader.stream(100))
    assert file.closed or file.tell() < MUCH_BYTES


def test_sound_sizes_are_read() -> None:
    """Of either case, with zeros before them, with extensions and with spaces behind them."""
    response, _ = _answer(b"003 ;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n")
    assert response.read() == b"abc0123456789"
