"""One attempt against a server that misbehaves: it ends in time, with a whole answer or with none."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import requests

from aj.client import Client, ClientError, NotUnderstood, Unreachable, exchange, transport
from aj.clock import monotonic_s
from tests.support.certificates import self_signed
from tests.support.raw_http import in_chunks
from tests.support.scripted_server import Reply, answer, dripping, hanging, scripted
from tests.support.waiting import wait_until

ID = "01a22875-8ab0-7b86-a00f-efef3fad16ff"
QUEUED = {"job_id": ID, "status": "queued"}
ACCEPTED = answer(202, QUEUED, Location=f"/jobs/{ID}", Retry_After="1")
HEAD = ACCEPTED.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
IN_CHUNKS = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", HEAD) + in_chunks(
    json.dumps(QUEUED).encode(), 30
)
BOTH = IN_CHUNKS.replace(b"Transfer-Encoding", b"Content-Length: 9\r\nTransfer-Encoding")
DONE = answer(200, {"job_id": ID, "status": "succeeded", "result": 25})
# What the time of a call may be passed by on a machine that is busy.
ROOM_S = 5.0


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("aj-client")]


@pytest.mark.parametrize(
    "reply",
    [hanging, dripping(b"HTTP/1.1 202 OK\r\n" + b"X: y\r\n" * 50), dripping(ACCEPTED[:-1] + b" " * 500)],
    ids=["silent", "dripping in its head", "dripping in its body"],
)
def test_no_server_holds_a_call_for_longer_than_its_time(reply: Reply) -> None:
    """Nor the thread that talked to it."""
    with scripted(reply) as server:
        client, begun_s = Client(server.url, timeout_s=0.5), monotonic_s()
        with pytest.raises(Unreachable, match="1 attempt"):
            client.submit(n=5)
        assert monotonic_s() - begun_s < 0.5 + ROOM_S
        wait_until(lambda: not threads(), within_s=ROOM_S, what="the end of the thread")


def test_nor_does_the_look_up_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which no timeout of a socket bounds."""
    is_over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: is_over.wait(30) and [])
    begun_s = monotonic_s()
    with pytest.raises(Unreachable):
        Client("http://host.example", timeout_s=0.3).submit(n=5)
    assert monotonic_s() - begun_s < 0.3 + ROOM_S
    is_over.set()
    wait_until(lambda: not threads(), within_s=ROOM_S, what="the end of the thread")


def test_a_signal_interrupts_a_call() -> None:
    """The exception of its handler comes out at once, and nothing is left behind."""

    class Rung(BaseException):
        pass

    def ring(*_: object) -> None:
        raise Rung

    before = signal.signal(signal.SIGUSR1, ring)
    try:
        with scripted(hanging) as server:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            with pytest.raises(Rung):
                Client(server.url).job(ID).refresh()
            wait_until(lambda: not threads(), within_s=ROOM_S, what="the end of the thread")
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("whole", [ACCEPTED, IN_CHUNKS, BOTH], ids=["with its length", "in chunks", "both"])
def test_an_answer_that_is_cut_anywhere_is_none(monkeypatch: pytest.MonkeyPatch, whole: bytes) -> None:
    """Also in the midst of the Location, whose half would be another address."""
    monkeypatch.setattr(transport, "pause", lambda _: None)
    cuts = [whole[:at] for at in range(len(whole.removesuffix(b"0\r\n\r\n")))]
    with scripted(*(reply for cut in cuts for reply in (cut, whole))) as server:
        for cut in cuts:
            server.asked.clear()
            assert Client(server.url).submit(n=5).url == f"{server.url}/jobs/{ID}"
            assert len(server.asked) == 2, cut


def test_nor_one_without_a_length_that_breaks_off() -> None:
    """An answer that ends with its connection counts where it is JSON."""
    unframed = b"HTTP/1.1 200 OK\r\n\r\n"
    whole = b'{"job_id": "%s", "status": "succeeded", "result": [25]}' % ID.encode()
    with scripted(unframed, unframed + whole[:-3], unframed + whole) as server:
        assert Client(server.url).job(ID).refresh().done
        assert len(server.asked) == 3


def test_nor_one_that_is_shorter_than_it_says() -> None:
    """Which older versions of urllib3 do not see."""

    class Careless(requests.Session):
        asked = 0

        def request(self, *given: Any, **named: Any) -> requests.Response:
            got = super().request(*given, **named)
            self.asked += 1
            got._content = got.content[: -5 if self.asked == 1 else None]
            return got

    session = Careless()
    with scripted(DONE) as server:
        assert Client(server.url, session=session).job(ID).refresh().done
    assert session.asked == 2


def test_a_fork_uses_no_connection_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a session of its own, and keeps it."""
    made: list[requests.Session] = []

    def make() -> requests.Session:
        made.append(requests.Session())
        return made[-1]

    monkeypatch.setattr(exchange, "make_session", make)
    with scripted(DONE) as server:
        job = Client(server.url).job(ID)
        for pid in (os.getpid(), 1, 1):
            monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
            assert job.refresh().done
    assert len(made) == 2


def test_interim_answers_are_passed_over() -> None:
    """However many come before the one that counts."""
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
    with scripted(3 * early + ACCEPTED) as server:
        assert Client(server.url).submit(n=5).id == ID
        assert len(server.asked) == 1


def test_no_redirect_is_followed() -> None:
    """Neither to where the key would be a stranger's, nor to a page for people to log in."""
    with scripted(answer(200)) as other, scripted(answer(307, Location=f"{other.url}/jobs")) as server:
        with pytest.raises(NotUnderstood, match="redirect") as caught:
            Client(server.url, api_key="aj_secret").submit(n=5)
        assert caught.value.status == 307
        assert len(server.asked) == 1
        assert other.asked == []


def test_the_key_goes_to_no_other_origin() -> None:
    """A Location that leads elsewhere is refused, and nothing is asked there."""
    with scripted(DONE) as other, scripted(answer(202, QUEUED, Location=f"{other.url}/jobs/{ID}")) as server:
        client = Client(server.url, api_key="aj_secret")
        with pytest.raises(NotUnderstood, match=other.url):
            client.submit(n=5)
        with pytest.raises(ClientError, match=other.url):
            client.job(f"{other.url}/jobs/{ID}")
        assert other.asked == []
        assert server.asked[0].headers["authorization"] == "Bearer aj_secret"


def test_a_next_page_elsewhere_is_refused() -> None:
    """A Link is as untrusted as a Location."""
    page = answer(200, {"jobs": [QUEUED]}, Link='<http://other.example/jobs?cursor=1>; rel="next"')
    with scripted(page) as server:
        jobs = Client(server.url).jobs()
        assert next(jobs).id == ID
        with pytest.raises(NotUnderstood):
            next(jobs)


def test_passwords_and_proxies_of_the_environment_stay_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of .netrc is sent, and an address of this machine is not asked for at a proxy."""
    (tmp_path / "netrc").write_text("default login me password aj_of_netrc\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with scripted(DONE) as server:
        assert Client(server.url).job(ID).refresh().done
        assert "authorization" not in server.asked[0].headers


def test_another_machine_is_asked_for_at_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As requests and curl do."""
    with scripted(DONE) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert Client("http://host.example/api").job(ID).refresh().done
        assert proxy.asked[0].path == f"http://host.example/api/jobs/{ID}"


def test_a_session_of_the_callers_is_used_as_it_is() -> None:
    """Its headers, its authentication and its adapters; only redirects are not followed."""
    session = requests.Session()
    session.headers["X-Team"] = "albums"
    session.auth = ("me", "word")
    with scripted(DONE) as server:
        client = Client(server.url, session=session)
        client.job(ID).refresh()
        Client(server.url, session=session, api_key="aj_key").job(ID).refresh()
        client.close()
        client.job(ID).refresh()
    first, second, _ = server.asked
    assert first.headers["x-team"] == "albums"
    assert first.headers["authorization"].startswith("Basic ")
    assert second.headers["authorization"] == "Bearer aj_key"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_certificate_that_is_not_trusted_is_not_asked_for_again(tls: ssl.SSLContext) -> None:
    """It would not be in a moment either, and nothing was sent."""
    with scripted(DONE, tls=tls) as server:
        with pytest.raises(Unreachable, match=r"1 attempt.*certificate"):
            Client(server.url).submit(n=5)
        assert server.asked == []


def test_over_tls_too_a_call_ends_in_time(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bundle that the environment names, as requests has it."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with scripted(DONE, dripping(DONE), tls=tls) as server:
        job = Client(server.url, timeout_s=0.5).job(ID)
        assert job.refresh().done
        with pytest.raises(Unreachable, match="1 attempt"):
            job.refresh()
        wait_until(lambda: not threads(), within_s=ROOM_S, what="the end of the thread")


def test_what_is_wrong_in_the_request_itself_is_not_asked_for_again() -> None:
    """The message says what."""

    class Broken(requests.Session):
        asked = 0

        def request(self, *_: Any, **__: Any) -> Any:
            self.asked += 1
            raise requests.exceptions.InvalidSchema("Missing dependencies for SOCKS support.")

    session = Broken()
    with pytest.raises(Unreachable, match=r"1 attempt.*SOCKS"):
        Client("http://host.example", session=session).submit(n=5)
    assert session.asked == 1


@pytest.mark.parametrize("api_key", ["", "a b", "aj_\n", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_repeated(api_key: str) -> None:
    """At once, when the client is made."""
    with pytest.raises(ClientError) as caught:
        Client("http://host", api_key=api_key)
    assert api_key not in str(caught.value) or not api_key


def test_a_key_is_in_no_text() -> None:
    """Neither in what the client says of itself, nor in an error."""
    with scripted(b"") as server:
        client = Client(server.url, api_key="aj_secret", timeout_s=0.3)
        with pytest.raises(Unreachable) as caught:
            client.submit(n=5)
    assert "aj_secret" not in f"{client!r} {caught.value!r} {caught.value.__cause__!r}"
