"""One attempt: a request goes out, and one whole answer comes back in time or not at all.

A timeout of `requests` begins anew with every byte, and does not bound the look-up of a name. So the request is made
in a thread, and the caller waits for that thread as long as there is time, and not longer. A thread that nobody waits
for any more has its connection shut under it.
Nothing is tried again here, no redirect is followed, and no password is taken from `.netrc`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl

import requests
import requests.auth

from aj import clock
from aj.client.attempt import make_session, session_like, within
from aj.client.call import Answer, Call, NoAnswer
from aj.client.pacing import Deadline
from aj.errors import causes

# One attempt waits so long for a sign of life, in seconds, and that much longer than it asked to be held.
SILENCE_S = 10.0
# And so long for a connection to one address, or half of the attempt's time: a name may have another one.
CONNECT_S = 5.0
# The largest body that is taken, unpacked: a few bytes that are packed well could fill all memory.
BODY_MOST = 256 * 2**20
_PIECE = 2**16
_BODILESS = (204, 304)
_NO_PROXIES = {"http": None, "https": None, "all": None}


class Exchange:
    """Sends requests to one API, from any thread. `session` is the caller's own, or None."""

    def __init__(self, api_key: str | None, session: requests.Session | None, *, is_loopback: bool) -> None:
        self._auth = _Auth(api_key)
        self._has_key, self._theirs, self._is_loopback = api_key is not None, session, is_loopback
        self._used = (os.getpid(), make_session() if session is None else session)

    def ask(self, call: Call, deadline: Deadline) -> Answer:
        """One attempt. Raises: NoAnswer."""
        left_s = deadline.left_s()
        if left_s <= 0:
            raise NoAnswer("there was no time left")
        answer = within(left_s, lambda: self._sent(call, left_s))
        if answer is None:
            raise NoAnswer("no whole answer came in time")
        return answer

    def _sent(self, call: Call, left_s: float) -> Answer:
        """Sends in this thread; `left_s` bounds each wait, not all of them. Raises: NoAnswer."""
        session, is_ours = self._session(), self._theirs is None
        begun_s = clock.monotonic_s()
        try:
            response = session.request(
                call.method,
                call.url,
                data=call.body,
                headers=call.headers(),
                # With something as `auth`, requests looks into no .netrc.
                auth=None if session.auth and not self._has_key else self._auth,
                timeout=(min(left_s / 2, CONNECT_S), min(left_s, SILENCE_S + (call.hold_s or 0))),
                allow_redirects=False,
                stream=True,
                # An address of this machine is not asked for at a proxy.
                proxies=_NO_PROXIES.copy() if is_ours and self._is_loopback else None,  # type: ignore[arg-type]
            )
            body = _body(response)
            _check_whole(response, body)
        except NoAnswer:
            raise
        except Exception as error:  # the bytes of an answer pass through many parsers, which raise many things
            raise _no_answer(error) from error
        took_s = clock.monotonic_s() - begun_s
        next_url = response.links.get("next", {}).get("url")
        return Answer(call, response.status_code, response.headers, body, next_url, took_s)

    def close(self) -> None:
        """Lets go of connections. A session of the caller's is the caller's."""
        session = self._used[1]
        if session is not self._theirs:
            session.close()

    def _session(self) -> requests.Session:
        """The session of this process. Raises: ClientError: after a fork, one of the caller's cannot be made again."""
        pid, session = self._used
        if pid != os.getpid():  # a fork: its connections, and perhaps its locks, are the parent's
            session = make_session() if self._theirs is None else session_like(self._theirs)
            self._used = (os.getpid(), session)
        return session


class _Auth(requests.auth.AuthBase):
    def __init__(self, api_key: str | None) -> None:
        self._api_key = api_key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._api_key is not None:
            request.headers["Authorization"] = f"Bearer {self._api_key}"
        return request


def _body(response: requests.Response) -> bytes:
    """The body, unpacked. Raises: NoAnswer: it is larger than any that is taken, or may be so in a single piece."""
    if response.raw is None:  # an adapter of the caller's own had it whole
        return response.content
    pieces, size = [], 0
    with contextlib.closing(response):
        if "," in response.headers.get("Content-Encoding", ""):
            raise NoAnswer("the answer is packed more than once", may_heal=False)
        for piece in response.iter_content(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > BODY_MOST:
                raise NoAnswer(f"the answer is larger than {BODY_MOST} bytes", may_heal=False)
    return b"".join(pieces)


def _check_whole(response: requests.Response, body: bytes) -> None:
    """Raises: NoAnswer: the answer was cut off.

    A connection that ends within the header section looks like one without a body to `http.client`, and perhaps half
    a Location with it. So what is neither framed nor JSON does not count.
    """
    length = response.headers.get("Content-Length", "")
    if response.status_code in _BODILESS:
        return
    if response.headers.get("Transfer-Encoding", "").strip().lower() == "chunked":
        is_whole = True  # where it is not, urllib3 says so; a length beside it does not count (RFC 9112, section 6.3)
    elif length.isdecimal():
        is_whole = "Content-Encoding" in response.headers or len(body) == int(length)
    else:
        is_whole = bool(body) and (response.status_code >= 300 or _is_json(body))
    if response.status_code < 200 or not is_whole:
        raise NoAnswer("the answer was cut off")


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _no_answer(error: Exception) -> NoAnswer:
    """What a foreign exception means, in the words of what is at its bottom.

    What is a ValueError too is wrong in the request itself. A certificate that does not fit will not fit in a moment.
    """
    found = list(causes(error))
    is_trouble = isinstance(error, requests.RequestException | OSError | http.client.HTTPException)
    is_certificate = any(isinstance(each, ssl.SSLCertVerificationError) for each in found)
    said = f"{type(found[-1]).__name__}: {str(found[-1])[:200]}"
    return NoAnswer(said, may_heal=is_trouble and not isinstance(error, ValueError) and not is_certificate)
