"""`post` against receivers that have no end: it always comes back in time, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import gc
import gzip
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from aj.egress import Egress
from aj.errors import DeliveryFailed
from tests.unit.egress_receivers import (
    Receiver,
    Script,
    allowing,
    answering,
    deaf,
    dripping,
    flooding,
    loopback_egress,
    read_request,
    receiving,
    silent,
    wait_until,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

ENDLESS: dict[str, Script] = {
    "silent": silent,
    "drips its status line": dripping(b"HTTP/1.1 2", b"0"),
    "drips one header": dripping(b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"),
    "drips headers": dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", every_s=0.1),
    "hints for ever": flooding(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100),
    "drips that it processes": dripping(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "continues for ever": flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
}


@pytest.mark.parametrize("script", ENDLESS.values(), ids=ENDLESS)
def test_a_receiver_without_an_end_is_left_at_the_deadline(script: Script) -> None:
    """The time is total: no byte that arrives prolongs it."""
    with receiving(script) as receiver:
        started_s = time.monotonic()
        with pytest.raises(DeliveryFailed) as caught:
            loopback_egress(0.3).post(receiver.url, {}, b"{}")
        assert 0.25 < time.monotonic() - started_s < 5
    assert caught.value.kind == "timeout"


def test_a_receiver_that_reads_nothing_is_left_at_the_deadline() -> None:
    """Sending is part of the time."""
    with receiving(deaf) as receiver:
        started_s = time.monotonic()
        with pytest.raises(DeliveryFailed) as caught:
            loopback_egress(0.3).post(receiver.url, {}, bytes(64 * 2**20))
        assert time.monotonic() - started_s < 5
    assert caught.value.kind == "timeout"


def test_a_port_that_accepts_nobody_is_left_at_the_deadline() -> None:
    """Connecting is part of the time."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        started_s = time.monotonic()
        with pytest.raises(DeliveryFailed) as caught:
            loopback_egress(0.3).post(f"http://127.0.0.1:{full.getsockname()[1]}/", {}, b"{}")
        assert time.monotonic() - started_s < 5
        for each in waiting:
            each.close()
    assert caught.value.kind == "timeout"


BODIES: dict[str, Script] = {
    "drips": dripping(b"HTTP/1.1 202 Accepted\r\nContent-Length: 1000\r\n\r\n", b"x"),
    "drips chunks": dripping(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "drips trailers": dripping(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
    "is silent": dripping(b"HTTP/1.1 202 Accepted\r\n\r\n", b"", every_s=5),
    "breaks off": answering(b"HTTP/1.1 202 Accepted\r\nContent-Length: 1000\r\n\r\nx"),
    "is not chunked": answering(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "is not gzip": answering(b"HTTP/1.1 202 Accepted\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
    "has a negative length": answering(b"HTTP/1.1 202 Accepted\r\nContent-Length: -3\r\n\r\nabc"),
}


@pytest.mark.parametrize("script", BODIES.values(), ids=BODIES)
def test_a_status_counts_whatever_the_body_does(script: Script) -> None:
    """The receiver has answered; sending again would be a duplicate."""
    with receiving(script) as receiver:
        started_s = time.monotonic()
        assert loopback_egress(1).post(receiver.url, {}, b"{}").status == 202
        assert time.monotonic() - started_s < 5


FLOODS = {
    "a plain body": b"HTTP/1.1 200 OK\r\n\r\n",
    "a redirect's body": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
    "a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    "a chunk's length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a packed body": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(2**20)),
}


@pytest.mark.parametrize("head", FLOODS.values(), ids=FLOODS)
def test_no_more_than_64_kib_of_a_body_are_read(head: bytes) -> None:
    """A body without end costs neither time nor memory: the answer is there long before the deadline."""
    sent = 0

    def script(receiver: Receiver, talking: socket.socket) -> None:
        nonlocal sent
        read_request(receiver, talking)
        talking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        talking.sendall(head)
        while not receiver.stop.is_set():
            sent += talking.send(b"1" * 65_536)

    with receiving(script) as receiver:
        started_s = time.monotonic()
        assert loopback_egress(10).post(receiver.url, {}, b"{}").status in (200, 302)
        assert time.monotonic() - started_s < 5
    assert sent < 16 * 2**20


def test_nothing_is_left_behind() -> None:
    """After 200 deliveries, good and bad, by 24 threads, no descriptor and no thread is there that was not before."""
    egress = Egress(allowing("127.0.0.0/8"), 0.2, "aj/test", lambda host, port: ["127.0.0.1"])
    scripts = [answering(OK), answering(b"nonsense\r\n"), BODIES["drips"], *ENDLESS.values()]

    def deliver(url: str) -> None:
        with contextlib.suppress(DeliveryFailed):
            egress.post(url, {}, b"{}")

    def all_at(port: int) -> list[str]:
        return [f"{scheme}://{host}:{port}/" for scheme in ("http", "https") for host in ("127.0.0.1", "hooks.example")]

    before = _held()
    gc.disable()  # what is left for the collector to find is left
    try:
        with contextlib.closing(egress), ThreadPoolExecutor(24) as pool:
            for script in scripts:
                with receiving(script) as receiver:
                    list(pool.map(deliver, all_at(receiver.port) * (200 // len(scripts) // 4 + 1)))
        assert wait_until(lambda: _held() <= before), _held() - before
    finally:
        gc.enable()


def _held() -> set[object]:
    """The threads and open files of this process, each as itself: what an earlier test held may end meanwhile."""
    held: set[object] = set(threading.enumerate())
    for number in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            opened = os.fstat(number)
            held.add((number, opened.st_dev, opened.st_ino))
    return held
