"""`post` over TLS: the certificate must be trusted and made for the name."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from pathlib import Path

import pytest
import requests.utils

from aj.egress import Egress, connection
from aj.errors import DeliveryFailed
from tests.support.certificates import self_signed
from tests.unit.egress_receivers import (
    Receiver,
    allowing,
    answering,
    deaf,
    dripping,
    loopback_egress,
    read_request,
    receiving,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SECRET = b"receiver-secret-7f3a"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls"), "DNS:hooks.example")


def _serving(certificate: Path, names: list[str | None]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _, name, __: names.append(name)
    return context


def _trusting(certificate: Path, monkeypatch: pytest.MonkeyPatch, timeout_s: float = 5.0) -> Egress:
    monkeypatch.setattr(requests.utils, "DEFAULT_CA_BUNDLE_PATH", str(certificate))
    monkeypatch.setattr(connection, "tls_context", connection.tls_context.__wrapped__)
    return Egress(allowing("127.0.0.0/8"), timeout_s, "aj/test", lambda host, port: ["127.0.0.1"])


def test_tls_is_checked_by_name_at_the_address_that_was_checked(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name travels as SNI and must stand in the certificate, though an address was connected to."""
    names: list[str | None] = []
    with receiving(answering(OK), _serving(certificate, names)) as receiver:
        egress = _trusting(certificate, monkeypatch)
        assert egress.post(f"https://hooks.example:{receiver.port}/", {}, b"{}").status == 200
    assert names == ["hooks.example"]
    assert f"\r\nHost: hooks.example:{receiver.port}\r\n".encode() in receiver.requests[0]


def test_one_handshake_serves_many_attempts(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is kept with its TLS, also where a record holds more than one read takes."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        while read_request(receiver, talking):
            talking.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n" + b"x" * 16_000)

    names: list[str | None] = []
    with receiving(script, _serving(certificate, names)) as receiver:
        with contextlib.closing(_trusting(certificate, monkeypatch)) as egress:
            for _ in range(5):
                assert egress.post(f"https://hooks.example:{receiver.port}/", {}, b"{}").status == 200
        assert (names, receiver.connections, len(receiver.requests)) == (["hooks.example"], 1, 5)


def test_bytes_after_the_body_end_a_connection_with_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where TLS holds them back, so that the socket has nothing to read."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        while read_request(receiver, talking):
            talking.sendall((b"HTTP/1.1 200 OK\r\nContent-Length: 8000\r\n\r\n" + b"x" * 8000).ljust(16_000, b"y"))

    with receiving(script, _serving(certificate, [])) as receiver:
        with contextlib.closing(_trusting(certificate, monkeypatch)) as egress:
            for _ in range(3):
                assert egress.post(f"https://hooks.example:{receiver.port}/", {}, b"{}").status == 200
        assert receiver.connections == 3


@pytest.mark.parametrize(("host", "words"), [("other.example", "(?i)hostname mismatch"), ("127.0.0.1", "(?i)mismatch")])
def test_a_certificate_for_another_name_is_refused(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, host: str, words: str
) -> None:
    """A trusted certificate of somebody else is no proof."""
    with receiving(answering(OK), _serving(certificate, [])) as receiver:
        egress = _trusting(certificate, monkeypatch)
        with pytest.raises(DeliveryFailed, match=words) as caught:
            egress.post(f"https://{host}:{receiver.port}/", {}, b"{}")
    assert caught.value.kind == "tls"
    assert receiver.requests == []


def test_a_certificate_that_nobody_trusts_is_refused(certificate: Path) -> None:
    """Self-signed, and not among the authorities."""
    egress = Egress(allowing("127.0.0.0/8"), 5.0, "aj/test", lambda host, port: ["127.0.0.1"])
    with (
        receiving(answering(OK), _serving(certificate, [])) as receiver,
        pytest.raises(DeliveryFailed, match="self-signed") as caught,
    ):
        egress.post(f"https://hooks.example:{receiver.port}/", {}, b"{}")
    assert caught.value.kind == "tls"
    assert receiver.requests == []


def test_a_dripping_tls_receiver_is_left_at_the_deadline(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait is given what is left of the time, below TLS too."""
    with receiving(dripping(b"HTTP/1.1 200 OK\r\nX-Drip: ", b"x"), _serving(certificate, [])) as receiver:
        egress = _trusting(certificate, monkeypatch, 0.3)
        started_s = time.monotonic()
        with pytest.raises(DeliveryFailed) as caught:
            egress.post(f"https://hooks.example:{receiver.port}/", {}, b"{}")
        assert time.monotonic() - started_s < 5
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", SECRET * 10, b"\x15\x03\x03\x00\x02\x02\x28"])
def test_a_port_without_tls_is_a_failure_of_tls(answer: bytes) -> None:
    """Plain HTTP, nonsense or an alert: the handshake ends there."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        talking.recv(1)
        talking.sendall(answer)
        receiver.stop.wait(2)

    with receiving(script) as receiver, pytest.raises(DeliveryFailed) as caught:
        loopback_egress().post(f"https://127.0.0.1:{receiver.port}/", {}, b"{}")
    assert caught.value.kind == "tls"
    assert SECRET.decode() not in str(caught.value)


def test_a_silent_tls_port_is_left_at_the_deadline() -> None:
    """The handshake is part of the time."""
    with receiving(deaf) as receiver:
        started_s = time.monotonic()
        with pytest.raises(DeliveryFailed) as caught:
            loopback_egress(0.3).post(f"https://127.0.0.1:{receiver.port}/", {}, b"{}")
        assert time.monotonic() - started_s < 5
    assert caught.value.kind == "timeout"
