"""How the bytes of a request come in: whole, or not at all."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

from aj.body import read_body
from aj.errors import BodyTooLarge, Malformed

LIMIT = 100


class Stream:
    """A `wsgi.input` that gives at most `step` bytes at a time and counts what was asked of it."""

    def __init__(self, body: bytes, step: int = 1) -> None:
        self._left, self._step = io.BytesIO(body), step
        self.asked: list[int] = []

    def read(self, size: int) -> bytes:
        self.asked.append(size)
        return self._left.read(min(size, self._step))


def environ(body: bytes, length: str | None, *, terminated: bool = False, step: int = 10**9) -> dict[str, Any]:
    """A WSGI environment; `terminated` is what servers say of chunked bodies."""
    made: dict[str, Any] = {"wsgi.input": Stream(body, step)}
    if length is not None:
        made["CONTENT_LENGTH"] = length
    if terminated:
        made["wsgi.input_terminated"] = True
    return made


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT])
@pytest.mark.parametrize("step", [1, 7, 10**9])
def test_a_body_of_its_length_is_read_whole(size: int, step: int) -> None:
    """Up to the limit, in whatever pieces it comes."""
    body = random.Random(size).randbytes(size)
    assert read_body(environ(body, str(size), step=step), LIMIT) == body


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT])
@pytest.mark.parametrize("step", [1, 7, 10**9])
def test_a_body_that_ends_by_itself_is_read_whole(size: int, step: int) -> None:
    """Chunked: no length, and the server knows the end."""
    body = random.Random(size).randbytes(size)
    assert read_body(environ(body, None, terminated=True, step=step), LIMIT) == body


@pytest.mark.parametrize("step", [1, 7, 10**9])
@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT * 50])
def test_a_body_that_ends_by_itself_beyond_the_limit_is_refused(size: int, step: int) -> None:
    """Not cut; and no more than one byte over the limit is read."""
    given = environ(b"x" * size, None, terminated=True, step=step)
    with pytest.raises(BodyTooLarge, match="over 100 bytes"):
        read_body(given, LIMIT)
    assert max(given["wsgi.input"].asked) == LIMIT + 1


def test_a_length_beyond_the_limit_is_refused_unread() -> None:
    """The client need not send what will not be taken."""
    given = environ(b"x" * (LIMIT + 1), str(LIMIT + 1))
    with pytest.raises(BodyTooLarge):
        read_body(given, LIMIT)
    assert given["wsgi.input"].asked == []


@pytest.mark.parametrize("size", [0, 1, 49])
@pytest.mark.parametrize("terminated", [False, True])
def test_a_body_that_ends_early_is_malformed(size: int, terminated: bool) -> None:
    """A valid JSON text may be what is left of a longer one."""
    with pytest.raises(Malformed, match=f"ended after {size} bytes; Content-Length says 50"):
        read_body(environ(b"x" * size, "50", terminated=terminated), LIMIT)


def test_no_more_than_the_length_is_read() -> None:
    """What follows is the next request's, and reading on would block."""
    given = environ(b"x" * 80, "50")
    assert read_body(given, LIMIT) == b"x" * 50
    assert sum(given["wsgi.input"].asked) == 50


@pytest.mark.parametrize("length", [None, ""])
def test_without_length_and_end_there_is_no_body(length: str | None) -> None:
    """Nothing is read from a stream whose end nobody knows: it would block for ever."""
    given = environ(b'{"n":5}', length)
    assert read_body(given, LIMIT) == b""
    assert given["wsgi.input"].asked == []


@pytest.mark.parametrize("length", ["101", "65536", "9" * 18, "9" * 19, "9" * 100_000, "0" * 17 + "101"])
def test_a_length_of_any_size_over_the_limit_is_too_large(length: str) -> None:
    """Also where the number is too long to be made one."""
    with pytest.raises(BodyTooLarge):
        read_body(environ(b"", length), LIMIT)


@pytest.mark.parametrize(
    "length",
    ["-1", "+5", "5.0", "5e1", "0x5", " 5", "5 ", "5\n", "5,5", "5, 5", "abc", "1_0", "\u0665", "\uff15", "\xb2", "\0"],
    ids=ascii,
)
def test_a_length_that_is_no_number_is_malformed(length: str) -> None:
    """Servers refuse these themselves; whoever does not is not trusted."""
    given = environ(b"xxxxx", length)
    with pytest.raises(Malformed, match="Content-Length"):
        read_body(given, LIMIT)
    assert given["wsgi.input"].asked == []


def test_leading_zeros_of_a_length_mean_nothing() -> None:
    """As RFC 9110 has it: digits."""
    assert read_body(environ(b"xxxxx", "0005"), LIMIT) == b"xxxxx"


def test_a_length_is_believed_where_the_stream_ends_by_itself_as_well() -> None:
    """Servers set both for a plain body."""
    assert read_body(environ(b"x" * 50, "50", terminated=True), LIMIT) == b"x" * 50


@pytest.mark.parametrize("error", [ConnectionResetError, TimeoutError, ValueError("bad chunk"), IndexError])
def test_a_stream_that_breaks_is_malformed(error: Exception | type[Exception]) -> None:
    """Servers have classes of their own for a client that went away or wrote chunks that are none."""

    class Broken:
        def read(self, size: int) -> bytes:
            raise error

    for given in ({"CONTENT_LENGTH": "5"}, {"wsgi.input_terminated": True}):
        with pytest.raises(Malformed, match="breaks off"):
            read_body({**given, "wsgi.input": Broken()}, LIMIT)
