"""What `post` does with the addresses of a name: all are judged, and one that was judged is used."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence

import pytest

from aj.egress import Egress
from aj.errors import AddressRefused, DeliveryFailed
from tests.unit.egress_receivers import allowing, answering, deaf, receiving, wait_until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Names:
    """A resolver that gives its answers in turn, the last for ever, and counts how often it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses to which sockets were connected or tried to; off loopback nothing is sent.

    What threads do that tests before this one have left, such as looking for their store, is not its business.
    """
    seen: list[str] = []
    others = {*threading.enumerate()} - {threading.current_thread()}
    connect = socket.socket.connect

    class Recorded(socket.socket):
        def connect(self, address: tuple[str, int]) -> None:  # type: ignore[override]
            if threading.current_thread() not in others:
                seen.append(address[0])
            if not address[0].startswith("127."):
                raise OSError(101, "Network is unreachable")
            connect(self, address)

    monkeypatch.setattr(socket, "socket", Recorded)
    return seen


def test_the_address_that_was_judged_is_the_one_that_is_called(dialled: list[str]) -> None:
    """A name whose second answer is private gains nothing: there is no second question."""
    names = Names(["93.184.215.14"], ["127.0.0.1"])
    with pytest.raises(DeliveryFailed, match="unreachable"):
        Egress((), 5.0, "aj/test", names).post("http://rebinding.example:8080/", {}, b"{}")
    assert names.asked == [("rebinding.example", 8080)]
    assert dialled == ["93.184.215.14"]


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["93.184.215.14", "127.0.0.1"],
        ["127.0.0.1", "93.184.215.14"],
        ["93.184.215.14", "10.0.0.1"],
        ["2606:4700::1111", "::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["fe80::1%1"],
        ["0.0.0.0"],
        ["93.184.215.14", "169.254.169.254"],
        ["224.0.0.1"],
    ],
)
def test_one_bad_address_refuses_the_whole_name(dialled: list[str], answers: list[str]) -> None:
    """An honest name has no such mixture; nothing is connected to, and no address is told."""
    with pytest.raises(AddressRefused) as caught:
        Egress((), 5.0, "aj/test", Names(answers)).post("http://mixed.example/", {}, b"{}")
    assert dialled == []
    assert not any(each in str(caught.value) for each in answers)


def test_addresses_are_tried_in_order() -> None:
    """A dead first address does not lose the delivery."""
    names = Names(["127.0.0.2", "127.0.0.3", "127.0.0.1"])
    with receiving(answering(OK)) as receiver:
        egress = Egress(allowing("127.0.0.0/8"), 5.0, "aj/test", names)
        assert egress.post(f"http://hooks.example:{receiver.port}/", {}, b"{}").status == 200
    assert receiver.connections == 1


def test_a_name_in_an_allowed_network_is_called_on_the_allowed_port_only() -> None:
    """The setting speaks of the address, so any name that leads there may be used."""
    with receiving(answering(OK)) as receiver:
        egress = Egress(allowing(f"127.0.0.1:{receiver.port}"), 5.0, "aj/test", Names(["127.0.0.1"]))
        assert egress.post(f"http://hooks.example:{receiver.port}/", {}, b"{}").status == 200
        with pytest.raises(AddressRefused, match="loopback"):
            egress.post("http://hooks.example:6379/", {}, b"{}")


def test_a_name_that_is_allowed_may_lead_to_a_private_address() -> None:
    """The setting speaks of the name; its neighbours and other ports stay shut."""
    with receiving(answering(OK)) as receiver:
        egress = Egress(allowing(f"hooks.internal:{receiver.port}"), 5.0, "aj/test", Names(["127.0.0.1"]))
        assert egress.post(f"http://hooks.internal:{receiver.port}/", {}, b"{}").status == 200
        for url in (
            f"http://x.hooks.internal:{receiver.port}/",
            "http://hooks.internal:6379/",
            "http://other.example/",
        ):
            with pytest.raises(AddressRefused):
                egress.post(url, {}, b"{}")


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]
)
def test_a_name_that_is_allowed_never_leads_to_a_metadata_service(dialled: list[str], address: str) -> None:
    """Whoever controls the name's zone does not control this."""
    egress = Egress(allowing("hooks.internal,0.0.0.0/0,[::/0]"), 5.0, "aj/test", Names([address]))
    with pytest.raises(AddressRefused, match="metadata"):
        egress.post("http://hooks.internal/", {}, b"{}")
    assert dialled == []


def test_an_ipv4_receiver_behind_nat64_is_public(dialled: list[str]) -> None:
    """On an IPv6-only network the resolver writes public IPv4 addresses like this."""
    with pytest.raises(DeliveryFailed, match="unreachable"):
        Egress((), 5.0, "aj/test", Names(["64:ff9b::808:808"])).post("http://hooks.example/", {}, b"{}")
    assert dialled == ["64:ff9b::808:808"]


def test_post_judges_the_url_again(dialled: list[str]) -> None:
    """A URL that was accepted under other settings, or never, is refused without a question."""
    names = Names(["127.0.0.1"])
    egress = Egress((), 5.0, "aj/test", names)
    for url in (
        "http://127.0.0.1:8141/",
        "http://localhost/",
        "http://2130706433/",
        "ftp://x.example/",
        "http://a@b.example/",
    ):
        with pytest.raises(AddressRefused):
            egress.post(url, {}, b"{}")
    assert names.asked == []
    assert dialled == []


@pytest.mark.parametrize(
    "error", [socket.gaierror(-2, "Name or service not known"), OSError("x"), UnicodeError("x"), ValueError("x")]
)
def test_a_name_without_an_address_is_a_failure_of_dns(error: Exception) -> None:
    """Whatever the resolver raises."""

    def failing(host: str, port: int) -> Sequence[str]:
        raise error

    with pytest.raises(DeliveryFailed, match="has no address") as caught:
        Egress((), 5.0, "aj/test", failing).post("http://nowhere.example/", {}, b"{}")
    assert caught.value.kind == "dns"


@pytest.mark.parametrize("answers", [[], ["nonsense"], ["127.1"], [""]])
def test_an_answer_that_holds_no_address_is_a_failure_of_dns(answers: list[str]) -> None:
    """It is not guessed at."""
    with pytest.raises(DeliveryFailed) as caught:
        Egress((), 5.0, "aj/test", Names(answers)).post("http://nowhere.example/", {}, b"{}")
    assert caught.value.kind == "dns"


def test_the_system_knows_no_invalid_names() -> None:
    """The real resolver, asked for a name that cannot exist."""
    with pytest.raises(DeliveryFailed) as caught:
        Egress((), 5.0, "aj/test").post("http://nowhere.invalid/", {}, b"{}")
    assert caught.value.kind in ("dns", "timeout")


def test_a_hanging_resolver_is_left_at_the_deadline() -> None:
    """Its thread ends by itself when the resolver does."""
    let_go = threading.Event()

    def hanging(host: str, port: int) -> Sequence[str]:
        let_go.wait(30)
        return ["127.0.0.1"]

    before = threading.active_count()
    started_s = time.monotonic()
    with pytest.raises(DeliveryFailed) as caught:
        Egress((), 0.3, "aj/test", hanging).post("http://slow.example/", {}, b"{}")
    assert time.monotonic() - started_s < 5
    assert caught.value.kind == "timeout"
    let_go.set()
    assert wait_until(lambda: threading.active_count() == before)


def test_a_slow_resolver_uses_up_the_same_time() -> None:
    """Look-up and connection share one deadline."""
    hold = threading.Event()

    def slow(host: str, port: int) -> Sequence[str]:
        hold.wait(1.5)
        return ["127.0.0.1"]

    with receiving(deaf) as receiver:
        started_s = time.monotonic()
        with pytest.raises(DeliveryFailed) as caught:
            Egress(allowing("127.0.0.1"), 2, "aj/test", slow).post(f"http://slow.example:{receiver.port}/", {}, b"{}")
        assert time.monotonic() - started_s < 3
    assert caught.value.kind == "timeout"
