"""One web process, and clients that would hold its loop if they could: by sending, by reading, by staying."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from aj.clock import monotonic_s
from aj.local.embedded import start_server
from tests.conftest import Deployment
from tests.support.certificates import self_signed
from tests.support.jobs import run
from tests.support.own_store import deployment_on
from tests.support.processes import Running, running_api
from tests.support.waiting import wait_until

BODY = b'{"n": 5}'
POST = b"POST /jobs HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 8\r\n"
SUBMISSION = POST + b"\r\n" + BODY
RESULT_BYTES = 1_000_000
# What a client could hold the loop for lies above it: gunicorn gives one that is to let go of its connection 2 s, so
# that CLIENTS of them would take 20 s, and one that reads or sends slowly for ever.
PROMPT_S = 8.0
CLIENTS = 10
# Of the contract, for a 503.
LONGEST_S = 3.0


@dataclass(frozen=True, slots=True)
class Web:
    """The API in one web process."""

    server: Running
    port: int
    job_id: str

    def connect(self, receive_bytes: int | None = None) -> socket.socket:
        client = socket.socket()
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.settimeout(PROMPT_S)
        client.connect(("127.0.0.1", self.port))
        return client

    def serves(self, times: int = 3) -> None:
        """Asserts that ordinary requests are answered soon."""
        status = f"GET /jobs/{self.job_id} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
        for sent, expected in ((SUBMISSION, 202), (status, 200)) * times:
            with self.connect() as client:
                client.sendall(sent)
                assert answer(client)[0] == expected

    def times_threads_woke(self) -> int:
        """How often any thread but the first, which is the loop's, was given something to do."""
        pid = self.server.children()[0]
        tasks = [each for each in Path(f"/proc/{pid}/task").iterdir() if each.name != str(pid)]
        return sum(
            int(line.split()[1])
            for each in tasks
            for line in (each / "status").read_text().splitlines()
            if line.startswith("voluntary_ctxt_switches")
        )

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.server.children()[0]}/fd"))


def answer(client: socket.socket) -> tuple[int, bytes]:
    """The next answer on the connection; none of the bytes behind it is taken."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        assert byte, f"the connection ended after {head!r}"
        head += byte
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    body = bytearray()
    while len(body) < int(fields[b"content-length"]):
        piece = client.recv(int(fields[b"content-length"]) - len(body))
        assert piece, f"the connection ended after {len(body)} bytes of a body"
        body += piece
    return int(head.split()[1]), bytes(body)


@contextmanager
def one_process(deployment: Deployment, folder: Path, *options: str) -> Iterator[Web]:
    job_id = run(deployment, deployment.client(), task="give_bytes", size=RESULT_BYTES)["job_id"]
    with running_api({**deployment.env, "AJ_WEB_WORKERS": "1"}, folder, *options) as (server, url):
        web = Web(server, int(url.rpartition(":")[2]), job_id)
        web.serves()
        yield web


@pytest.fixture
def web(deployment: Deployment, folder: Path) -> Iterator[Web]:
    with one_process(deployment, folder) as made:
        yield made


def ask_for_result(web: Web, receive_bytes: int) -> socket.socket:
    client = web.connect(receive_bytes)
    client.sendall(f"GET /jobs/{web.job_id}/result HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    return client


def test_no_thread_is_woken_for_a_quick_request(web: Web) -> None:
    """While the machine is too busy for any to be quick, threads have some of them; so it is tried until it is not."""
    with web.connect() as client:

        def woken_by_twenty() -> int:
            before = web.times_threads_woke()
            for _ in range(20):
                client.sendall(SUBMISSION)
                assert answer(client)[0] == 202
            return web.times_threads_woke() - before

        wait_until(lambda: woken_by_twenty() < 10, 60, "requests that wake no thread")


def test_who_sends_slowly_holds_nobody(web: Web) -> None:
    """Neither within the head nor within the body nor before either; each is answered once it is done."""
    cuts = [0, 1, 30, len(POST) - 1, len(POST), len(POST) + 2, len(SUBMISSION) - 1]
    clients = [web.connect() for _ in cuts]
    for client, cut in zip(clients, cuts, strict=True):
        client.sendall(SUBMISSION[:cut])
    web.serves()
    for client, cut in zip(clients, cuts, strict=True):
        client.sendall(SUBMISSION[cut:])
        assert answer(client)[0] == 202
        client.close()


def test_who_reads_slowly_holds_nobody_and_misses_nothing(web: Web) -> None:
    """The answer is whole, byte for byte, and so is the next one on each connection."""
    clients = [ask_for_result(web, 4096) for _ in range(CLIENTS)]
    web.serves()
    for client in clients:
        assert answer(client) == (200, b'"' + b"x" * RESULT_BYTES + b'"')
        client.sendall(SUBMISSION)
        assert answer(client)[0] == 202
        client.close()


def test_requests_that_come_together_are_answered_in_their_order(web: Web) -> None:
    """A part of one that stands in gunicorn's own buffer is not forgotten, and its sender holds nobody."""
    status = f"GET /jobs/{web.job_id} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
    unknown = status.replace(web.job_id.encode(), b"01a2b3c4-0000-7000-8000-000000000000")
    for cut in (1, len(POST), len(SUBMISSION)):
        with web.connect() as client:
            client.sendall(SUBMISSION + status + unknown + SUBMISSION[:cut])
            assert [answer(client)[0] for _ in range(3)] == [202, 200, 404]
            web.serves()
            client.sendall(SUBMISSION[cut:] + unknown)
            assert [answer(client)[0] for _ in range(2)] == [202, 404]


def test_who_does_not_let_go_of_a_connection_holds_nobody(web: Web) -> None:
    """The answer says that the connection ends, and it ends for the client; what it does then is its own affair."""
    clients = [web.connect() for _ in range(CLIENTS)]
    for client in clients:
        client.sendall(POST + b"Connection: close\r\n\r\n" + BODY)
    begun_s = monotonic_s()
    for client in clients:
        assert answer(client)[0] == 202
        assert client.recv(1) == b""
    web.serves()
    assert monotonic_s() - begun_s < PROMPT_S
    for client in clients:
        client.close()


def test_a_store_that_hangs_keeps_nobody_longer_than_the_contract_says(folder: Path) -> None:
    """503 within 3 s for each, whoever waits before it; and the process still says that it lives."""

    def timed(client: HTTPConnection, path: str) -> tuple[int, float]:
        begun_s = monotonic_s()
        client.request("GET", path)
        found: HTTPResponse = client.getresponse()
        found.read()
        return found.status, monotonic_s() - begun_s

    with start_server(folder / "store") as server, one_process(deployment_on(server), folder) as web:
        clients = [HTTPConnection("127.0.0.1", web.port, timeout=30) for _ in range(CLIENTS)]
        paths = ["/healthz" if each % 3 == 1 else f"/jobs/{web.job_id}" for each in range(CLIENTS)]
        for client in clients:
            client.connect()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            for _ in range(2):
                with ThreadPoolExecutor(CLIENTS) as pool:
                    answers = list(pool.map(timed, clients, paths))
                assert [status for status, _ in answers] == [200 if path == "/healthz" else 503 for path in paths]
                assert max(took_s for _, took_s in answers) < LONGEST_S
        finally:
            os.kill(server.pid, signal.SIGCONT)
        wait_until(lambda: timed(clients[0], paths[0])[0] == 200, what="the client's recovery")


def test_nothing_of_a_connection_is_left(deployment: Deployment, folder: Path) -> None:
    """However it ends: else the places for clients would run out, and the files."""
    ends = POST + b"Connection: close\r\n\r\n" + BODY
    with one_process(deployment, folder, "--worker-connections=4", "--threads=2") as web:
        # Two threads and the loop may each open a connection to the store meanwhile.
        most = web.files() + 3
        for sent in (b"", b"G", POST, SUBMISSION, SUBMISSION * 2, b"\x16\x03\x01", ends):
            for resets in (False, True):
                for _ in range(2):
                    with web.connect() as client:
                        client.sendall(sent)
                        if resets:
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        web.serves()
        wait_until(lambda: web.files() <= most, what="files that are closed")


def test_a_process_that_stops_waits_for_no_idle_client(web: Web) -> None:
    """Neither for one that has sent nothing yet nor for one between two requests: long before its patience is over."""
    clients = [web.connect(), web.connect()]
    clients[1].sendall(SUBMISSION)
    assert answer(clients[1])[0] == 202
    begun_s = monotonic_s()
    assert web.server.stop() == 0
    assert monotonic_s() - begun_s < PROMPT_S
    assert [client.recv(1) for client in clients] == [b"", b""]
    for client in clients:
        client.close()


def test_a_process_that_stops_finishes_what_is_being_read(web: Web) -> None:
    """A client that is slow but reads gets its answer whole."""
    client = ask_for_result(web, 4096)
    web.server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "Handling signal: term" in web.server.output, what="a server that stops")
    assert answer(client) == (200, b'"' + b"x" * RESULT_BYTES + b'"')
    client.close()
    assert web.server.stop() == 0


def test_a_process_that_stops_gives_up_on_who_reads_and_sends_nothing(deployment: Deployment, folder: Path) -> None:
    """Gunicorn's patience has an end."""
    with (
        one_process(deployment, folder, "--graceful-timeout=1") as web,
        ask_for_result(web, 4096),
        web.connect() as sender,
    ):
        sender.sendall(POST)
        web.serves()
        begun_s = monotonic_s()
        web.server.stop()
        assert monotonic_s() - begun_s < PROMPT_S


def test_over_tls_requests_are_answered_too(deployment: Deployment, folder: Path) -> None:
    """What stands on the socket is no request that anybody could judge; and each connection has several."""
    certificate = self_signed(folder, "IP:127.0.0.1")
    context = ssl.create_default_context(cafile=str(certificate))
    options = (f"--certfile={certificate}", f"--keyfile={certificate}", "--workers=1")
    with running_api(deployment.env, folder, *options) as (server, url):
        for _ in range(3):
            line = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
            with context.wrap_socket(line, server_hostname="127.0.0.1") as client:
                for _ in range(3):
                    client.sendall(SUBMISSION)
                    assert answer(client)[0] == 202
        assert "Exception" not in server.output


def test_without_keepalive_a_client_has_time_to_send(deployment: Deployment, folder: Path) -> None:
    """`--keep-alive 0` ends a connection after its answer, and not before."""
    with one_process(deployment, folder, "--keep-alive=0") as web, web.connect() as client:
        for _ in range(3):
            with web.connect() as other:
                other.sendall(SUBMISSION)
                assert answer(other)[0] == 202
                assert other.recv(1) == b""
        client.sendall(SUBMISSION)
        assert answer(client)[0] == 202


def test_a_process_that_has_had_its_requests_makes_room_for_another(deployment: Deployment, folder: Path) -> None:
    """`--max-requests` counts what the loop answers too, and loses nothing."""
    with one_process(deployment, folder, "--max-requests=10") as web:
        web.serves(times=1)
        first = web.server.children()
        for _ in range(10):
            with web.connect() as client:
                client.sendall(SUBMISSION)
                status, body = answer(client)
                assert (status, json.loads(body)["status"]) == (202, "queued")
        wait_until(lambda: web.server.children() not in ([], first), what="another process")
