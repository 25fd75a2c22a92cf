"""What `post` does with real receivers on loopback, honest ones and others."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from aj.egress import Answer, Egress
from aj.egress.deadline import Deadline
from aj.egress.exchange import Line
from aj.egress.url import read
from aj.errors import DeliveryFailed
from tests.unit.egress_receivers import (
    Receiver,
    Script,
    allowing,
    answering,
    flooding,
    loopback_egress,
    read_request,
    receiving,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SECRET = b"receiver-secret-7f3a"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299, 400, 404, 410, 429, 500, 503])
def test_any_final_status_is_an_answer(status: int) -> None:
    """What it means is for the caller to say."""
    with receiving(answering(f"HTTP/1.1 {status} Word\r\nContent-Length: 0\r\n\r\n".encode())) as receiver:
        assert loopback_egress().post(receiver.url, {}, b"{}") == Answer(status, None)


def test_the_request_is_exactly_what_was_asked_for() -> None:
    """Body bytes, headers, User-Agent and Host arrive unchanged."""
    with receiving(answering(OK)) as receiver:
        headers = {"webhook-id": "msg_1", "Content-Type": "application/json"}
        loopback_egress().post(f"http://127.0.0.1:{receiver.port}/a/b?x=1&y=%20", headers, b'{"a": "\xc3\xbc"}')
    head, _, body = receiver.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /a/b?x=1&y=%20 HTTP/1.1"
    assert {line.lower() for line in lines[1:]} == {
        f"host: 127.0.0.1:{receiver.port}",
        "accept-encoding: identity",
        "content-length: 11",
        "webhook-id: msg_1",
        "content-type: application/json",
        "user-agent: aj/test",
    }
    assert body == b'{"a": "\xc3\xbc"}'


def test_the_host_header_is_the_name_and_not_the_address() -> None:
    """A receiver that serves several names must see which one was meant."""
    egress = Egress(allowing("127.0.0.0/8"), 5.0, "aj/test", lambda host, port: ["127.0.0.1"])
    with receiving(answering(OK)) as receiver:
        egress.post(f"http://Hooks.Example.:{receiver.port}/", {}, b"{}")
    assert f"\r\nHost: hooks.example:{receiver.port}\r\n".encode() in receiver.requests[0]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://hooks.example/", "hooks.example"),
        ("http://hooks.example:80/", "hooks.example"),
        ("https://hooks.example/", "hooks.example"),
        ("https://hooks.example:80/", "hooks.example:80"),
        ("http://hooks.example:443/", "hooks.example:443"),
        ("https://[2001:4860::8888]", "[2001:4860::8888]"),
    ],
)
def test_the_host_header_leaves_out_a_default_port(url: str, host: str) -> None:
    """As RFC 9110 section 7.2 and every other client have it."""
    ours, theirs = socket.socketpair()
    target, deadline = read(url), Deadline(5)
    with ours, theirs:
        theirs.sendall(OK)
        assert Line(target, ours, deadline).exchange(target, {}, b"{}", deadline) == (200, "")
        assert f"\r\nHost: {host}\r\n".encode() in theirs.recv(65_536)


def test_an_ipv6_receiver_is_reached() -> None:
    """The address stands in brackets in the URL and in the Host header."""
    with receiving(answering(OK), family=socket.AF_INET6) as receiver:
        assert loopback_egress().post(f"http://[::1]:{receiver.port}/", {}, b"{}").status == 200
    assert f"\r\nHost: [::1]:{receiver.port}\r\n".encode() in receiver.requests[0]


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_an_interim_answer_is_passed_over(status: int) -> None:
    """RFC 9110, section 15.2: however many come before the final one, and whatever they hold."""
    interim = f"HTTP/1.1 {status} Soon\r\nRetry-After: 9\r\nContent-Length: 7\r\n\r\n".encode()
    with receiving(answering(interim * 3 + OK)) as receiver:
        response = loopback_egress().post(receiver.url, {}, b"{}")
        assert (response.status, response.retry_after_s) == (200, None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(status: int) -> None:
    """The place that it points to is never called."""
    with receiving(answering(OK)) as elsewhere:
        redirect = f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere.url}\r\nContent-Length: 0\r\n\r\n".encode()
        with receiving(answering(redirect)) as receiver:
            assert loopback_egress().post(receiver.url, {}, b"{}").status == status
            assert receiver.connections == 1
        assert elsewhere.connections == 0


@pytest.mark.parametrize("location", [b"http://[", b"//", b"\xff\xfe", b"http://u:p@h:99999/", b"x" * 60_000])
def test_a_broken_redirect_is_still_an_answer(location: bytes) -> None:
    """Nobody parses the Location."""
    with receiving(answering(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\n\r\n")) as receiver:
        assert loopback_egress().post(receiver.url, {}, b"{}").status == 302


@pytest.mark.parametrize(
    ("text", "least_s", "most_s"),
    [
        ("0", 0.0, 0.0),
        ("120", 120.0, 120.0),
        (" 120 ", 120.0, 120.0),
        ("-5", 0.0, 0.0),
        ("9" * 5000, 366 * 86_400.0, 366 * 86_400.0),
        ("IN 100 S %a, %d %b %Y %H:%M:%S GMT", 60.0, 100.0),
        ("IN 100 S %A, %d-%b-%y %H:%M:%S GMT", 60.0, 100.0),
        ("IN 100 S %a %b %d %H:%M:%S %Y", 60.0, 100.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0, 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 366 * 86_400.0, 366 * 86_400.0),
    ],
)
def test_retry_after_is_read_in_each_of_its_forms(text: str, least_s: float, most_s: float) -> None:
    """Delay in seconds, and the three forms of an HTTP date; never negative, never endless."""
    if text.startswith("IN 100 S "):
        text = time.strftime(text.removeprefix("IN 100 S "), time.gmtime(time.time() + 100))
    answer = f"HTTP/1.1 503 Busy\r\nRetry-After: {text}\r\nContent-Length: 0\r\n\r\n".encode()
    with receiving(answering(answer)) as receiver:
        retry_after_s = loopback_egress().post(receiver.url, {}, b"{}").retry_after_s
    assert retry_after_s is not None
    assert least_s <= retry_after_s <= most_s


@pytest.mark.parametrize(
    "text", ["", "soon", "1.5", "+5", "1e9", "0x10", "inf", "nan", "5, 6", "٣", "Mon", "Xxx, 99 Foo 2026 99:99:99", ","]
)
def test_a_retry_after_that_says_nothing_is_ignored(text: str) -> None:
    """The answer counts all the same."""
    answer = f"HTTP/1.1 429 Slow\r\nRetry-After: {text}\r\nContent-Length: 0\r\n\r\n".encode()
    with receiving(answering(answer)) as receiver:
        assert loopback_egress().post(receiver.url, {}, b"{}") == Answer(429, None)


NASTY: dict[str, tuple[Script, str]] = {
    "closes at once": (lambda receiver, talking: None, "protocol"),
    "closes after the request": (answering(b""), "protocol"),
    "is not HTTP": (answering(b"-ERR " + SECRET + b"\r\n"), "protocol"),
    "is binary": (answering(bytes(range(256)) + SECRET), "protocol"),
    "speaks HTTP/0.9": (answering(SECRET), "protocol"),
    "has a wordy status": (answering(b"HTTP/1.1 abc " + SECRET + b"\r\n\r\n"), "protocol"),
    "has a huge status": (answering(b"HTTP/1.1 99999 " + SECRET + b"\r\n\r\n"), "protocol"),
    "has a negative status": (answering(b"HTTP/1.1 -200 " + SECRET + b"\r\n\r\n"), "protocol"),
    "has another version": (answering(b"HTTP/9.9 200 " + SECRET + b"\r\n\r\n"), "protocol"),
    "has a status line without end": (flooding(b"HTTP/1.1 200 ", SECRET * 1000), "protocol"),
    "has a header without end": (flooding(b"HTTP/1.1 200 OK\r\nX: ", SECRET * 1000), "protocol"),
    "has headers without end": (flooding(b"HTTP/1.1 200 OK\r\n", b"X: " + SECRET + b"\r\n"), "protocol"),
    "has two lengths": (answering(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), "protocol"),
    "switches protocols": (answering(b"HTTP/1.1 101 " + SECRET + b"\r\nUpgrade: x\r\n\r\n"), "protocol"),
    "hints and goes": (answering(b"HTTP/1.1 103 " + SECRET + b"\r\n\r\n"), "protocol"),
}


@pytest.mark.parametrize(("script", "kind"), NASTY.values(), ids=NASTY)
def test_what_is_not_http_fails_with_our_words_only(script: Script, kind: str) -> None:
    """Whoever gave us the address must not read by our messages what stands behind it."""
    with receiving(script) as receiver, pytest.raises(DeliveryFailed) as caught:
        loopback_egress().post(receiver.url, {}, b"{}")
    assert caught.value.kind == kind
    assert SECRET.decode() not in f"{caught.value} {caught.value.args}"


ODD = {
    "no reason": b"HTTP/1.1 200\r\n\r\n",
    "bare line feeds": b"HTTP/1.0 200 OK\n\n",
    "headers that are none": b"HTTP/1.1 200 OK\r\n: x\r\nnonsense\r\n\x00\xff: \xfe\r\n\r\n",
    "a folded header": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
    "an odd type": b"HTTP/1.1 200 OK\r\nContent-Type: ;;;charset==\xff;\r\n\r\n",
    "odd cookies": b"HTTP/1.1 200 OK\r\nSet-Cookie: " + b"a=b; " * 12_000 + b"\r\n\r\n",
    "a cookie": b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Domain=.127.0.0.1; Expires=x-9-9 9:9:9\r\n\r\n",
    "an odd encoding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, \xff\r\n\r\n",
    "an odd challenge": b"HTTP/1.1 200 OK\r\nWWW-Authenticate: Digest \xff=,,\r\n\r\n",
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_odd_headers_do_not_spoil_an_answer(answer: bytes) -> None:
    """Only the status and Retry-After are of interest."""
    with receiving(answering(answer)) as receiver:
        assert loopback_egress().post(receiver.url, {}, b"{}").status == 200


def test_cookies_are_not_kept() -> None:
    """Two deliveries have nothing in common."""
    egress = loopback_egress()
    with receiving(answering(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")) as receiver:
        egress.post(receiver.url, {}, b"{}")
        egress.post(receiver.url, {}, b"{}")
    assert receiver.connections == 2
    assert b"cookie" not in receiver.requests[1].lower()


def test_a_refused_connection_says_so() -> None:
    """Nobody listens there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(DeliveryFailed, match=r"(?i)refused") as caught:
            loopback_egress().post(f"http://127.0.0.1:{port}/", {}, b"{}")
    assert caught.value.kind == "connect"


def test_a_reset_connection_is_a_failure_of_protocol() -> None:
    """The receiver was reached, but it did not answer."""

    def script(receiver: Receiver, talking: socket.socket) -> None:
        read_request(receiver, talking)
        talking.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    with receiving(script) as receiver, pytest.raises(DeliveryFailed, match="ConnectionResetError") as caught:
        loopback_egress().post(receiver.url, {}, b"{}")
    assert caught.value.kind == "protocol"


def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy and no password enters a delivery from outside of the settings."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login someone password hunter2\ndefault login x password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    with receiving(answering(OK)) as proxy, receiving(answering(OK)) as receiver:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert loopback_egress().post(receiver.url, {}, b"{}").status == 200
        assert proxy.connections == 0
    assert b"authorization" not in receiver.requests[0].lower()
