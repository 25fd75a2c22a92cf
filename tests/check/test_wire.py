"""However the other side behaves, an exchange ends in its time, reads a bounded answer and raises nothing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import pytest

from aj.check import wire
from aj.check.exchange import Request
from tests.check.rude import drip, hang, less_than_nothing, more_and_more_interim, pour, rude, saying

TIMEOUT_S = 1.0
MUCH_MORE_S = 15.0

SAID = {
    "nothing": b"",
    "garbage": b"\x00\xff\xfe not HTTP at all \x1b[31m\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a status that is no number": b"HTTP/1.1 abc Oh\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nA: b\r\n" + b"X: y\r\n" * 500,
    "a line without end": b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000,
    "a body that is cut": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
    "a broken chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a chunk that is cut": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
    "a huge status": b"HTTP/1.1 99999 Oh\r\n\r\n",
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
def test_what_is_not_http_is_no_answer(said: bytes) -> None:
    """And the exchange says why."""
    with rude(saying(said)) as url:
        exchange = wire.play(Request("GET", url), TIMEOUT_S)
    assert exchange.answer is None
    assert exchange.failure


@pytest.mark.parametrize("behave", [hang, drip, more_and_more_interim])
def test_an_exchange_has_a_time_in_all(behave: Callable[[socket.socket, threading.Event], None]) -> None:
    """Also where each byte comes soon after the one before."""
    with rude(behave) as url:
        began_s = time.monotonic()
        exchange = wire.play(Request("GET", url), TIMEOUT_S)
    assert exchange.failure == "no whole answer within 1 s"
    assert time.monotonic() - began_s < MUCH_MORE_S


def test_an_answer_is_read_up_to_a_bound() -> None:
    """What comes behind it is not read."""
    with rude(pour) as url:
        exchange = wire.play(Request("GET", url), 30)
    assert exchange.failure == f"HTTPException: the answer is over {wire.MAX_ANSWER_BYTES} bytes"


def test_a_chunk_of_less_than_nothing_is_not_read() -> None:
    """However much comes behind it: the exchange is over at once, and not with its time."""
    with rude(less_than_nothing) as url:
        exchange = wire.play(Request("GET", url), 30)
    assert exchange.failure.startswith("IncompleteRead")


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    """Who is redirected sees where to."""
    with rude(saying(b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")) as url:
        exchange = wire.play(Request("GET", url), TIMEOUT_S)
    assert (exchange.status, exchange.field("location")) == (307, "http://127.0.0.1:1/")


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:{port}/",
        "http://127.0.0.1:1/",
        "http://no-such-host.invalid/",
        "http://a..b/",
        "http://[::1",
        "http://a:b/",
    ],
)
def test_where_nobody_answers_the_exchange_says_so(url: str) -> None:
    """TLS to a server without, a closed port, a name that is none, an address that is none."""
    with rude(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as base:
        exchange = wire.play(Request("GET", url.replace("{port}", base.rpartition(":")[2])), TIMEOUT_S)
    assert exchange.answer is None
    assert exchange.failure


def test_no_line_end_gets_into_a_request() -> None:
    """Whatever a profile or a server has put into a field."""
    exchange = wire.play(Request("GET", "http://127.0.0.1:1/", (("A", "b\r\nC: d"),)), TIMEOUT_S)
    assert "line end" in exchange.failure
