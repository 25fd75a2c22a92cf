"""What a web process takes for one whole request is one to gunicorn's own parser too, however strangers write it.

Were it not, the parser would ask the client for more, in the loop that serves all others.
"""

from __future__ import annotations

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from gunicorn.http.parser import RequestParser  # type: ignore[import-untyped]
from hypothesis import event, example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from aj.local.gunicorn_worker import Quick
from tests.property.hostile import hostile_bytes

QUICK = Quick(["/jobs"])
STATUS = b"GET /jobs/01a2b3c4-0000-7000-8000-000000000000 HTTP/1.1\r\n"
SUBMISSION = b"POST /jobs HTTP/1.1\r\n"
HARMLESS = (b"Host: test", b"Accept: */*", b"Connection: close", b"X-Y: z", b"Content-Type: application/json")
LINES = (
    *HARMLESS,
    *(b"Content-Length: 8", b"content-length:8", b"Content-Length: 08", b"Content-Length: 5", b"Content-Length: 0"),
    *(
        b"Content-Length : 8",
        b" Content-Length: 8",
        b"Content_Length: 8",
        b"Content-Length: +8",
        b"Content-Length: 8, 8",
    ),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding : chunked", b"Transfer_Encoding: chunked", b"TE: trailers"),
    *(b"\ttransfer-encoding: chunked", b"X: a\nTransfer-Encoding: chunked", b"X: a\rTransfer-Encoding: chunked"),
    *(b"Expect: 100-continue", b"Expect: nothing", b"Upgrade: h2c", b"Prefer: wait=9", b"prefer : wait=9"),
    *(b": empty", b"no colon", b" folded", b"", b"X: \x00", b"X: \x7f", b"X: \xff", b"\xffX: y", b"X\x00: y"),
)
STARTS = (
    *(STATUS, SUBMISSION, SUBMISSION, b"HEAD" + STATUS[3:], STATUS.replace(b" HTTP", b"?x=/%00[ HTTP")),
    *(
        b"POST /jobs HTTP/1.0\r\n",
        b"POST http://test/jobs HTTP/1.1\r\n",
        b"\r\n" + SUBMISSION,
        b"POST  /jobs HTTP/1.1\r\n",
    ),
    *(
        b"PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n" + SUBMISSION,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /jobs HTTP/1.1\n",
    ),
)
BODIES = (b'{"n": 5}', b'{"n": 5}', b"", b"0\r\n\r\n", b"8\r\n12345678\r\n0\r\n\r\n", SUBMISSION, SUBMISSION + b"\r\n")
KINDEST = {
    "permit_obsolete_folding": True,
    "strip_header_spaces": True,
    "header_map": "dangerous",
    "forwarded_allow_ips": "*",
    "forwarder_headers": "*",
    "casefold_http_method": True,
    "permit_unconventional_http_method": True,
    "permit_unconventional_http_version": True,
    "limit_request_line": 0,
    "proxy_protocol": "auto",
}


ODD_BYTES = (
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\0",
    b" ",
    b"\t",
    b":",
    b"_",
    b"-",
    b"\xff",
    b"0",
    b"9",
    b"content-length: 9\r\n",
)


class Client:
    """A socket on which these bytes have arrived, and which never gives more."""

    def __init__(self, arrived: bytes) -> None:
        self.left = arrived

    def recv(self, most: int) -> bytes:
        assert self.left, "gunicorn asks for more than was taken for a whole request"
        given_now, self.left = self.left[:most], self.left[most:]
        return given_now


@st.composite
def twisted(draw: st.DrawFn) -> bytes:
    """A request in which one or two things may be wrong."""
    body = draw(st.sampled_from(BODIES))
    lines = draw(st.lists(st.sampled_from(HARMLESS), max_size=3, unique=True))
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    lines += draw(st.just([]) | st.lists(st.sampled_from(LINES), max_size=1))
    end = draw(st.sampled_from([b"\r\n"] * 6 + [b"\n", b"\r", b"\r\n\r\n"]))
    start = draw(st.just(SUBMISSION) | st.sampled_from(STARTS))
    whole = start + b"".join(line + end for line in draw(st.permutations(lines))) + b"\r\n" + body
    if draw(st.booleans()):
        at, what = draw(st.integers(0, len(whole))), draw(st.sampled_from(ODD_BYTES) | st.binary(max_size=2))
        whole = whole[:at] + what + whole[at + draw(st.integers(0, 2)) :]
    return whole


@profile(max_examples=500)
@given(
    twisted() | hostile_bytes(SUBMISSION, STATUS, *LINES, b"\r\n", b"\r\n\r\n", b"\n\n"), st.sampled_from([{}, KINDEST])
)
@example(SUBMISSION + b"X: a\n\n" + b"Content-Length: 8\r\n\r\n", {})
@example(SUBMISSION + b"Content-Length : 8\r\n\r\n", KINDEST)
@example(SUBMISSION + b"X: a\r\n Content-Length: 8\r\n\r\n", KINDEST)
@example(SUBMISSION + b"X: a\r\nTransfer-Encoding : chunked\r\n\r\n", KINDEST)
@example(SUBMISSION + b"Content-Length: 5\r\nContent-Length: 0\r\n\r\n", {})
def test_gunicorn_never_asks_for_more_than_a_quick_request(arrived: bytes, options: dict[str, object]) -> None:
    """It reads exactly these bytes, or refuses them."""
    if not QUICK(arrived):
        return
    config = Config()
    for name, value in options.items():
        config.set(name, value)
    client = Client(arrived)
    parser = RequestParser(config, client, ("127.0.0.1", 1))
    try:
        request = next(parser)
        body = request.body.read()
    except ParseException:
        event("refused")
        return
    event(f"taken, with {len(body)} bytes")
    assert parser.finish_body()
    assert (client.left, parser.unreader.buf.getvalue()) == (b"", b"")
    assert arrived.endswith(b"\r\n\r\n" + body)


LENGTH = b"Content-Length: 8\r\n"
BODY = b'\r\n{"n": 5}'


@pytest.mark.parametrize(
    "arrived",
    [
        SUBMISSION + LENGTH + BODY,
        SUBMISSION + b"Host: a\r\ncontent-length:\t8 \r\nX-Y: \xe4\r\n" + BODY,
        SUBMISSION.replace(b" HTTP", b"?a=b HTTP") + LENGTH + BODY,
        SUBMISSION + b"\r\n",
        STATUS + b"\r\n",
        STATUS.replace(b" HTTP", b"/result HTTP") + b"Accept: */*\r\n\r\n",
        b"HEAD" + STATUS[3:] + b"Connection: close\r\n\r\n",
    ],
)
def test_a_whole_request_that_will_not_wait_is_quick(arrived: bytes) -> None:
    """A submission, or a look at a job; and what lacks its last byte is none yet."""
    assert QUICK(arrived)
    assert not QUICK(arrived[:-1])
    assert not QUICK(arrived + b"G")


@pytest.mark.parametrize(
    "arrived",
    [
        b"",
        SUBMISSION + LENGTH + b"Prefer: wait=5\r\n" + BODY,
        SUBMISSION + LENGTH + b"expect: 100-continue\r\n" + BODY,
        SUBMISSION + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        SUBMISSION + LENGTH + LENGTH + BODY,
        SUBMISSION + LENGTH.replace(b":", b" :") + BODY,
        SUBMISSION + LENGTH + b"X_Y: z\r\n" + BODY,
        SUBMISSION + LENGTH + b" folded\r\n" + BODY,
        SUBMISSION + LENGTH + b"X: \0\r\n" + BODY,
        SUBMISSION.replace(b"\r\n", b"\n") + LENGTH + BODY,
        SUBMISSION.replace(b"1.1", b"1.0") + LENGTH + BODY,
        SUBMISSION.replace(b"/jobs", b"http://test/jobs") + LENGTH + BODY,
        SUBMISSION.replace(b"/jobs", b"/jobsmore") + LENGTH + BODY,
        STATUS + b"Upgrade: h2c\r\n\r\n",
        STATUS.replace(b" HTTP", b"/cancel HTTP").replace(b"GET", b"POST") + b"\r\n",
        STATUS.replace(b" HTTP", b"/of-the-host HTTP") + b"\r\n",
        b"GET /jobs HTTP/1.1\r\n\r\n",
        b"GET /jobs/export HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
    ],
)
def test_all_others_are_not(arrived: bytes) -> None:
    """Cancelling waits for the end of the job, a list may be long, and who knows what else an app has below `/jobs`."""
    assert not QUICK(arrived)


def test_a_prefix_may_have_any_letters() -> None:
    """They are on the wire as a URL writes them."""
    quick = Quick(["/grün/jobs", "/a.b/jobs"])
    assert quick(b"POST /gr%C3%BCn/jobs HTTP/1.1\r\n\r\n")
    assert quick(b"POST /a.b/jobs HTTP/1.1\r\n\r\n")
    assert not quick(b"POST /axb/jobs HTTP/1.1\r\n\r\n")
