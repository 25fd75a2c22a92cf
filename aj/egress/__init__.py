"""The one door for outbound HTTP to addresses that somebody gave us.

A URL is judged twice: by its text when it is submitted, and by all addresses of its host right before a connection is
made, of which one that was judged is the one that is connected to. A connection is kept for ten seconds, for the same
scheme, host and port. Nothing here follows a redirect, takes a proxy or a password from the environment, keeps a
cookie, or waits longer than it was told to.

    address.py       which addresses may be called
    url.py           what may be learned from a URL without resolving it
    deadline.py      the total time of an attempt
    connection.py    resolve, connect, begin TLS
    wire.py          the connected socket under the deadline
    exchange.py      send, and read what matters of the answer
    kept.py          connections that wait for the next attempt
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC

from aj import clock
from aj.egress import url as urls
from aj.egress.address import Address, why_refused
from aj.egress.connection import Resolver, dial, look_up, secure, system_resolver
from aj.egress.deadline import Deadline
from aj.egress.exchange import Line
from aj.egress.kept import LIFE_S, Kept, KeptLines
from aj.errors import AddressRefused, DeliveryFailed
from aj.settings import Allowed

__all__ = ["Answer", "Egress", "Resolver", "host_of"]

RETRY_AFTER_MOST_S = 366 * 86_400.0
_DELAY_SECONDS = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver said: its status, and how long it asks to be left alone, if it does."""

    status: int
    retry_after_s: float | None


class Egress:
    """Calls addresses that are public or allowed by a setting; safe to share between threads.

    `timeout_s` is the total time of one attempt, from the look-up of the name to the end of the answer.
    One that calls must be closed in the end.
    """

    def __init__(
        self,
        allowed: Sequence[Allowed],
        timeout_s: float,
        user_agent: str,
        resolve: Resolver = system_resolver,
    ) -> None:
        self._allowed = tuple(allowed)
        self._timeout_s = timeout_s
        self._user_agent = user_agent
        self._resolve = resolve
        self._kept = KeptLines()

    def check_url(self, url: str) -> str:
        """Judges a URL without resolving its host; gives its receiver as `host:port`, to count calls by.

        Raises: AddressRefused: it may not be called; the message says which rule refused it.
        """
        target = urls.read(url)
        urls.judge(target, self._allowed)
        return target.endpoint

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One attempt to POST `body`. Any final status is an answer, a redirect too.

        Raises:
            AddressRefused: the URL, or an address of its host, may not be called.
            DeliveryFailed: no answer; its kind is `timeout`, `dns`, `connect`, `tls` or `protocol`.
        """
        target = urls.read(url)
        urls.judge(target, self._allowed)
        sent, deadline = {**headers, "User-Agent": self._user_agent}, Deadline(self._timeout_s)
        kept = self._kept.take(target)
        if kept is not None and self._why_refused(kept.address, target) is None:
            try:
                return self._exchange(kept, target, sent, body, deadline)
            except DeliveryFailed:
                # The receiver may have closed it at this moment, as it may at any, which is no failure of its own. If
                # it had read the request before, it now gets it twice.
                if kept.line.has_heard or deadline.is_over():
                    raise
        elif kept is not None:
            kept.line.close()
        return self._exchange(self._dialled(target, deadline), target, sent, body, deadline)

    def close_old(self) -> None:
        """Closes connections that nobody has used for ten seconds. Call it now and then."""
        self._kept.close_old()

    def close(self) -> None:
        """Closes the connections that are kept."""
        self._kept.close()

    def _exchange(
        self, kept: Kept, target: urls.Target, headers: Mapping[str, str], body: bytes, deadline: Deadline
    ) -> Answer:
        try:
            status, retry_after = kept.line.exchange(target, headers, body, deadline)
        finally:
            self._kept.give(kept)
        return Answer(status, parse_retry_after_s(retry_after))

    def _dialled(self, target: urls.Target, deadline: Deadline) -> Kept:
        """A new connection to an address that was checked."""
        ends_at_s = clock.monotonic_s() + LIFE_S
        connected, address = dial(self._checked_addresses(target, deadline), target, deadline)
        try:
            return Kept(Line(target, secure(connected, target, deadline), deadline), target, address, ends_at_s)
        except BaseException:
            connected.close()
            raise

    def _checked_addresses(self, target: urls.Target, deadline: Deadline) -> list[Address]:
        """All addresses of the target, each of which may be called.

        One that may not be called refuses the whole name: an honest name has no such mixture. The message
        does not show the address, so that nobody can read a private zone by submitting names.
        """
        if target.address is not None:
            return [target.address]
        addresses = look_up(self._resolve, target, deadline)
        for address in addresses:
            reason = self._why_refused(address, target)
            if reason is not None:
                raise AddressRefused(f"{target.host} resolves to {reason}")
        return addresses

    def _why_refused(self, address: Address, target: urls.Target) -> str | None:
        return why_refused(address, target.port, self._allowed, urls.host_allowed(target, self._allowed))


def host_of(url: str) -> str:
    """The host of a URL, to count calls by. Whether it may be called is asked elsewhere.

    Raises: AddressRefused: the URL cannot be read.
    """
    return urls.read(url).host


def parse_retry_after_s(text: str) -> float | None:
    """Seconds to wait by a Retry-After, from 0 to a year; None where it says nothing that can be understood.

    Source: RFC 9110 section 10.2.3.
    """
    text = text.strip()
    if _DELAY_SECONDS.fullmatch(text):
        return min(max(0.0, float(text)), RETRY_AFTER_MOST_S)
    try:
        at = email.utils.parsedate_to_datetime(text)
        # An HTTP date is in UTC also in the old form that does not say so.
        at_s = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(0.0, at_s - clock.now_ms() / 1000), RETRY_AFTER_MOST_S)
