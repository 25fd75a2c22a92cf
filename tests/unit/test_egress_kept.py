"""Connections that are kept for the next attempt: when one is used again, and when it must not be."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from aj import clock
from aj.egress import Egress, kept
from aj.errors import AddressRefused, DeliveryFailed
from tests.unit.egress_receivers import Receiver, Script, allowing, loopback_egress, read_request, receiving, wait_until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def serving(*answers: bytes) -> Script:
    """Answers request after request on one connection, with the last answer for ever; then waits for its end."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        left = list(answers)
        while read_request(receiver, talking):
            talking.sendall(left.pop(0) if len(left) > 1 else left[0])

    return script


@pytest.fixture
def egress() -> Iterator[Egress]:
    with contextlib.closing(loopback_egress()) as made:
        yield made


def named(*addresses: str, allow: str = "127.0.0.0/8") -> Egress:
    """An egress that finds every name at the first of `addresses`, then at the next one, at the last for ever."""
    left = list(addresses)
    return Egress(allowing(allow), 5.0, "aj/test", lambda host, port: [left.pop(0) if len(left) > 1 else left[0]])


KEPT = {
    "a body of known length": OK,
    "no body": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "chunks": CHUNKED + b"2\r\nok\r\n0\r\n\r\n",
    "chunks and trailers": CHUNKED + b"2;x=y\r\nok\r\n0\r\nX: y\r\n\r\n",
    "interim answers": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + OK,
    "a refusal": b"HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nno",
    "just under 64 KiB": b"HTTP/1.1 200 OK\r\nContent-Length: 65535\r\n\r\n" + b"x" * 65_535,
}


@pytest.mark.parametrize("answer", KEPT.values(), ids=KEPT)
def test_twenty_attempts_need_one_connection(egress: Egress, answer: bytes) -> None:
    """Where each answer was read to its exact end; each request is whole and by itself."""
    with receiving(serving(answer)) as receiver:
        statuses = {egress.post(f"{receiver.url}?{number}", {}, b"%d" % number).status for number in range(20)}
        assert len(statuses) == 1
        assert receiver.connections == 1
        assert [each.rpartition(b"\r\n")[2] for each in receiver.requests] == [b"%d" % number for number in range(20)]


SPENT = {
    "says that it closes": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    "speaks HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "sends bytes after the body": OK + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "sends bytes after the last chunk": CHUNKED + b"0\r\n\r\n0\r\n\r\n",
    "sends a body that must not be": b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
    "has a length and chunks": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + b"0\r\n\r\n",
    "has two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    "has an odd length": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
    "has an odd coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
    "breaks its chunks": CHUNKED + b"zz\r\n",
    "sends more than is read": b"HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n" + b"x" * 65_537,
}


@pytest.mark.parametrize("answer", SPENT.values(), ids=SPENT)
def test_a_doubtful_end_of_an_answer_ends_the_connection(egress: Egress, answer: bytes) -> None:
    """The answer counts, and the next attempt has a connection of its own, so that no answer is taken for another."""
    with receiving(serving(answer)) as receiver:
        assert {egress.post(receiver.url, {}, b"{}").status for _ in range(3)} <= {200, 204}
        assert receiver.connections == 3


def test_a_body_without_a_length_ends_with_its_connection(egress: Egress) -> None:
    """Nobody could tell where the next answer begins."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.sendall(b"HTTP/1.1 200 OK\r\n\r\nok")

    with receiving(script) as receiver:
        assert {egress.post(receiver.url, {}, b"{}").status for _ in range(3)} == {200}
        assert receiver.connections == 3


def test_bytes_on_an_idle_connection_end_it(egress: Egress) -> None:
    """What nobody asked for is never taken for an answer."""
    sent = threading.Event()

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.sendall(OK)
        if receiver.connections == 1:
            go_on.wait(10)
            talking.sendall(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
            sent.set()
        receiver.stop.wait(10)

    go_on = threading.Event()
    with receiving(script) as receiver:
        assert egress.post(receiver.url, {}, b"{}").status == 200
        go_on.set()
        assert sent.wait(10)
        assert egress.post(receiver.url, {}, b"{}").status == 200
        assert receiver.connections == 2


@pytest.mark.parametrize("reads", [False, True], ids=["before", "after"])
def test_a_connection_that_the_receiver_closed_is_no_failure(egress: Egress, reads: bool) -> None:
    """It may do so before the next request, or having read it: a new connection is dialled within the same attempt."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.sendall(OK)
        if reads:
            read_request(receiver, talking)

    with receiving(script) as receiver:
        assert {egress.post(receiver.url, {}, b"{}").status for _ in range(3)} == {200}
        assert receiver.connections == 3
        assert len(receiver.requests) == (5 if reads else 3)


def test_a_new_connection_that_breaks_is_a_failure(egress: Egress) -> None:
    """One that is used for the first time was not closed in between; the receiver is asked no third time."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        if receiver.connections == 1:
            talking.sendall(OK)
            read_request(receiver, talking)

    with receiving(script) as receiver:
        egress.post(receiver.url, {}, b"{}")
        with pytest.raises(DeliveryFailed) as caught:
            egress.post(receiver.url, {}, b"{}")
        assert (caught.value.kind, receiver.connections) == ("protocol", 2)


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 2"], ids=["is silent", "begins"])
def test_a_receiver_that_is_slow_on_a_kept_connection_has_had_its_attempt(begins: bytes) -> None:
    """Only one that closed without a word is asked again."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.sendall(OK)
        read_request(receiver, talking)
        talking.sendall(begins)
        receiver.stop.wait(10)

    with contextlib.closing(loopback_egress(0.3)) as egress, receiving(script) as receiver:
        egress.post(receiver.url, {}, b"{}")
        with pytest.raises(DeliveryFailed) as caught:
            egress.post(receiver.url, {}, b"{}")
        assert (caught.value.kind, receiver.connections) == ("timeout", 1)


def test_an_answer_that_breaks_off_on_a_kept_connection_is_a_failure(egress: Egress) -> None:
    """The receiver had begun to answer, so it knew of the request."""
    with receiving(serving(OK, b"HTTP/1.1 ABC\r\n\r\n")) as receiver:
        egress.post(receiver.url, {}, b"{}")
        with pytest.raises(DeliveryFailed):
            egress.post(receiver.url, {}, b"{}")
        assert receiver.connections == 1


# -- whose connection it is, and for how long ----------------------------------------------------------------


def test_a_connection_is_for_one_name_and_port() -> None:
    """Two names at one address share none, nor do two ports of one name; two paths do."""
    with contextlib.closing(named("127.0.0.1")) as egress, receiving(serving(OK)) as one, receiving(serving(OK)) as two:
        for path in "ab":
            for host in ("hooks.example", "other.example"):
                for receiver in (one, two):
                    egress.post(f"http://{host}:{receiver.port}/{path}", {}, b"{}")
        assert (one.connections, two.connections) == (2, 2)


def test_two_attempts_at_a_time_have_two_connections(egress: Egress) -> None:
    """Both are kept."""
    both = threading.Barrier(2, timeout=10)

    def script(receiver: Receiver, talking: socket.socket) -> None:
        while read_request(receiver, talking):
            both.wait()
            talking.sendall(OK)

    with receiving(script) as receiver:
        for _ in range(3):
            posting = [threading.Thread(target=egress.post, args=(receiver.url, {}, b"{}")) for _ in range(2)]
            for each in posting:
                each.start()
            for each in posting:
                each.join()
        assert (receiver.connections, len(receiver.requests)) == (2, 6)


@pytest.mark.parametrize("host", ["127.0.0.1", "hooks.example"])
def test_an_address_that_is_not_allowed_any_more_is_left(host: str) -> None:
    """A kept connection is judged as a new one is, and closed."""
    ended = threading.Event()

    def script(receiver: Receiver, talking: socket.socket) -> None:
        serving(OK)(receiver, talking)
        ended.set()

    with contextlib.closing(named("127.0.0.1")) as egress, receiving(script) as receiver:
        url = f"http://{host}:{receiver.port}/"
        egress.post(url, {}, b"{}")
        egress._allowed = ()
        with pytest.raises(AddressRefused):
            egress.post(url, {}, b"{}")
        egress.close()
        assert ended.wait(10)
        assert len(receiver.requests) == 1


def test_a_name_that_leads_elsewhere_is_followed_within_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often its connection is used: the new address is judged, and the old one not called again."""
    now_s = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s)
    names = named("127.0.0.1", "10.0.0.1")
    with contextlib.closing(names) as egress, receiving(serving(OK)) as receiver:
        url = f"http://rebinding.example:{receiver.port}/"
        for _ in range(5):
            egress.post(url, {}, b"{}")
            now_s += 1.9
        now_s += 0.6
        with pytest.raises(AddressRefused, match="private use"):
            egress.post(url, {}, b"{}")
        assert (receiver.connections, len(receiver.requests)) == (1, 5)


def test_a_connection_that_nobody_uses_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """When its time is over, and not before."""
    ended = threading.Event()
    now_s = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s)

    def script(receiver: Receiver, talking: socket.socket) -> None:
        serving(OK)(receiver, talking)
        ended.set()

    with contextlib.closing(loopback_egress()) as egress, receiving(script) as receiver:
        egress.post(receiver.url, {}, b"{}")
        egress.close_old()
        egress.post(receiver.url, {}, b"{}")
        assert receiver.connections == 1
        now_s += kept.LIFE_S
        egress.close_old()
        assert ended.wait(10)


def test_no_more_are_kept_than_the_process_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that has waited longest is closed for another."""
    monkeypatch.setattr(kept, "MOST_KEPT", 2)
    with contextlib.closing(named("127.0.0.1")) as egress, receiving(serving(OK)) as receiver:
        for host in ("a", "b", "c", "b", "c", "a"):
            egress.post(f"http://{host}.example:{receiver.port}/", {}, b"{}")
        assert receiver.connections == 4


def test_the_end_of_an_egress_ends_its_connections(egress: Egress) -> None:
    """The receiver notices."""
    ended = threading.Event()

    def script(receiver: Receiver, talking: socket.socket) -> None:
        serving(OK)(receiver, talking)
        ended.set()

    with receiving(script) as receiver:
        egress.post(receiver.url, {}, b"{}")
        egress.close()
        assert wait_until(ended.is_set)
