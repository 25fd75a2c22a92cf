"""Connections of a client: after a fork, to a name with several addresses, under a body without end, at the end of all.

A session of the caller's own is tried with the client's own one.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.synchronize import Barrier
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter

from aj.client import Client, ClientError, Unreachable, exchange
from tests.support.scripted_server import answer, scripted

CHILDREN = 4
EACH = 20


class Echo(BaseHTTPRequestHandler):
    """Keeps connections open; the id of each job is the `n` of its submission, and of a look what its path says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        n = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["n"]
        seen = {"team": self.headers.get("X-Team"), "host": self.client_address[0], "port": self.client_address[1]}
        self._say(202, {"job_id": f"job-{n}", "status": "queued", **seen})

    def do_GET(self) -> None:
        self._say(
            200, {"job_id": self.path.rpartition("/")[2], "status": "succeeded", "result": self.client_address[1]}
        )

    def _say(self, status: int, document: Any) -> None:
        body = gzip.compress(json.dumps(document).encode())
        self.send_response(status)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    """Where Echo is."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class WithWords(HTTPAdapter):
    """An adapter that needs what requests does not copy with it."""

    def __init__(self, word: str) -> None:
        self.word = word
        super().__init__()

    def init_poolmanager(self, *given: Any, **named: Any) -> None:
        assert self.word
        super().init_poolmanager(*given, **named)

    def add_headers(self, request: requests.PreparedRequest, **_: Any) -> None:
        request.headers["X-Team"] = self.word


class OfATeam(requests.Session):
    """A session that has more than requests knows of."""

    def __init__(self) -> None:
        super().__init__()
        self.adapter = WithWords("albums")
        self.mount("http://", self.adapter)


@pytest.mark.parametrize("make", [lambda: None, requests.Session, OfATeam], ids=["ours", "theirs", "of another class"])
def test_no_child_of_a_fork_hears_what_another_one_asked(url: str, make: Callable[[], Any]) -> None:
    """They all come from a process that had a connection open, and ask at the same moment."""
    session = make()
    client = Client(url, session=session)
    ports: dict[int | None, set[int]] = {None: {client.submit(n=0).document["port"]}}
    context = multiprocessing.get_context("fork")
    barrier, heard = context.Barrier(CHILDREN), context.SimpleQueue()
    children = [context.Process(target=_ask, args=(client, barrier, heard, number)) for number in range(CHILDREN)]
    for child in children:
        child.start()
    for _ in children:
        number, documents = heard.get()
        assert [each["job_id"] for each in documents] == [f"job-{number * 1000 + n}" for n in range(EACH)]
        assert {each["team"] for each in documents} == {"albums" if isinstance(session, OfATeam) else None}
        ports[number] = {each["port"] for each in documents}
    for child in children:
        child.join(30)
    assert len(set.union(*ports.values())) == len(ports)
    assert client.submit(n=1).document["port"] in ports[None]


def _ask(client: Client, barrier: Barrier, heard: Any, number: int) -> None:
    documents: list[dict[str, Any]] = []
    try:
        barrier.wait(30)
        documents += [client.submit(n=number * 1000 + n).document for n in range(EACH)]
    finally:
        heard.put((number, documents))


def test_a_session_that_cannot_be_made_again_is_not_used_after_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the child is told what to do."""

    class Stubborn(BaseAdapter):
        def send(self, *_: Any, **__: Any) -> requests.Response:
            raise AssertionError("the connection of the parent is used")

        def close(self) -> None:
            pass

    session = requests.Session()
    session.mount("http://", Stubborn())
    client = Client("http://host.example", session=session)
    monkeypatch.setattr("os.getpid", lambda: 1)
    with pytest.raises(ClientError, match="make the client and its session anew"):
        client.submit(n=5)


class WithPools(HTTPAdapter):
    """An adapter that keeps connections where requests does not, as those for Unix sockets do."""

    def __init__(self) -> None:
        self.pools: dict[str, Any] = {}
        super().__init__()

    def get_connection_with_tls_context(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> Any:
        parts = urlsplit(str(request.url))
        return self.pools.setdefault(parts.netloc, urllib3.HTTPConnectionPool(str(parts.hostname), parts.port))


class Put(HTTPAdapter):
    """An adapter whose pools are not what it makes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.poolmanager = type("Other", (urllib3.PoolManager,), {})()


@pytest.mark.parametrize(("adapter", "why"), [(WithPools, "'pools' may hold"), (Put, "'poolmanager' was put there")])
def test_nor_one_whose_adapter_has_connections_of_its_own(
    url: str, monkeypatch: pytest.MonkeyPatch, adapter: Callable[[], Any], why: str
) -> None:
    """They would be those of the parent."""
    session = requests.Session()
    session.mount("http://", adapter())
    client = Client(url, session=session)
    client.submit(n=5)
    monkeypatch.setattr("os.getpid", lambda: 1)
    with pytest.raises(ClientError, match=f"session anew.*{why}"):
        client.submit(n=6)


def test_what_was_said_of_its_connections_counts_after_a_fork_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they come from, or whom they trust, is given to a method that requests does not repeat."""
    adapter = HTTPAdapter()
    adapter.init_poolmanager(1, 1, source_address=("127.0.0.9", 0))
    session = requests.Session()
    session.mount("http://", adapter)
    client = Client(url, session=session)
    seen = [client.submit(n=5).document]
    monkeypatch.setattr("os.getpid", lambda: 1)
    seen.append(client.submit(n=6).document)
    assert [each["host"] for each in seen] == ["127.0.0.9"] * 2
    assert seen[0]["port"] != seen[1]["port"]


def test_what_a_session_has_in_slots_goes_with_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of requests' own would be without."""

    class Slotted(requests.Session):
        __slots__ = ("team",)
        team: str

        def request(self, *given: Any, **named: Any) -> requests.Response:
            self.headers["X-Team"] = self.team
            return super().request(*given, **named)

    session = Slotted()
    session.team = "albums"
    client = Client(url, session=session)
    monkeypatch.setattr("os.getpid", lambda: 1)
    assert client.submit(n=5).document["team"] == "albums"


def test_connections_are_kept_for_the_next_call(url: str) -> None:
    """Each whole answer leaves its connection fit for another one."""
    for session in (None, requests.Session()):
        client = Client(url, session=session)
        assert len({client.job(f"job-{n}").result() for n in range(9)}) == 1


@pytest.mark.parametrize("session", [None, requests.Session()], ids=["ours", "theirs"])
def test_a_small_answer_that_unpacks_to_a_large_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, session: requests.Session | None
) -> None:
    """Once, with its key, and long before it is whole; what is just small enough is taken."""
    monkeypatch.setattr(exchange, "BODY_MOST", 1_000_000)
    whole = json.dumps({"job_id": "x", "status": "queued"}).encode()
    packed = [gzip.compress(whole + b" " * (size - len(whole))) for size in (1_000_000, 100_000_000)]
    replies = [answer(202, body, Content_Encoding="gzip") for body in packed]
    with scripted(*replies) as server:
        client = Client(server.url, session=session)
        assert client.submit(n=5).status == "queued"
        with pytest.raises(Unreachable, match=r"1 attempt.*larger than 1000000 bytes") as caught:
            client.submit(n=5)
    assert caught.value.idempotency_key


def test_an_adapter_may_bring_its_answer_whole() -> None:
    """As one does that stands in for a network in somebody's tests."""

    class Whole(BaseAdapter):
        def send(self, *_: Any, **__: Any) -> requests.Response:
            response = requests.Response()
            response.status_code, response._content = 200, b'{"job_id": "x", "status": "queued"}'
            return response

        def close(self) -> None:
            pass

    session = requests.Session()
    session.mount("http://", Whole())
    assert Client("http://host.example", session=session).job("x").refresh().status == "queued"


def test_an_answer_that_is_packed_twice_is_refused() -> None:
    """A piece of it could unpack to anything."""
    body = gzip.compress(gzip.compress(b'{"job_id": "x", "status": "queued"}'))
    reply = answer(202, body, Content_Encoding="gzip, gzip")
    with scripted(reply) as server, pytest.raises(Unreachable, match=r"1 attempt.*more than once"):
        Client(server.url).submit(n=5)


def test_an_address_that_says_nothing_leaves_time_for_the_next_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may have several addresses, and one of them be a hole: half of the time is for the others."""
    port = int(url.rpartition(":")[2])
    asked: list[str] = []
    look_up = socket.getaddrinfo

    def two_addresses(host: str, *more: Any, **named: Any) -> list[Any]:
        if host != "two.example":  # a thread of somebody else
            return look_up(host, *more, **named)
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in ("127.0.0.2", "127.0.0.1")]

    with socket.socket() as hole:
        hole.bind(("127.0.0.2", port))
        hole.listen(0)
        waiting = [socket.socket() for _ in range(3)]  # so many that the kernel leaves the next one without an answer
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(hole.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", two_addresses)
        assert Client(f"http://two.example:{port}", timeout_s=6).submit(n=5).id == "job-5"
        for each in waiting:
            each.close()
    assert asked == ["two.example"]


@pytest.mark.parametrize(
    ("text", "attempts"),
    [("can't create new thread at interpreter shutdown", "1 attempt,"), ("can't start", "2 attempts")],
)
def test_where_no_thread_can_be_started_it_is_an_error_of_the_client(
    url: str, monkeypatch: pytest.MonkeyPatch, text: str, attempts: str
) -> None:
    """As in a function of `atexit`, from Python 3.12 on; where there are only too many of them, that may pass."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError(text)

    client = Client(url)
    monkeypatch.setattr("aj.client.transport.pause", lambda _: None)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("aj.client.transport.repeat_after_s", lambda attempt, _: 0.0 if attempt == 1 else 99.0)
    with pytest.raises(Unreachable, match=f"{attempts}.*{text}"):
        client.job("x").cancel()
