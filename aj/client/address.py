"""Addresses: where the API is mounted, and which others may be called. Text only; asks nobody.

An API key goes to the origin it was given for and to no other, whatever an answer names.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, unquote, urljoin, urlsplit

from aj.client.errors import ClientError

_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[\x21-\x7e]{1,4096}")


class Base:
    """Where an API is mounted: `http://127.0.0.1:8140` or `https://host/api`.

    Raises: ClientError: it is not http or https, has no host, or holds a user, a query or a fragment.
    """

    def __init__(self, url: str) -> None:
        self._origin = _origin(url)
        parts = urlsplit(url)
        if parts.query or parts.fragment:
            raise ClientError("the address of an API has neither query nor fragment")
        self.url = url.rstrip("/")
        self.is_loopback = _is_loopback(parts.hostname or "")

    def of(self, path: str) -> str:
        """The address of `path`, such as `/jobs`, below the place where the API is mounted."""
        return self.url + path

    def job(self, text: str) -> str:
        """The address of a job by its id, its Location or its whole URL. Raises: ClientError."""
        if "/" not in text:
            if not text or text in (".", "..") or not text.isprintable():
                raise ClientError(f"{text[:80]!r} is neither the id nor the address of a job")
            return self.of(f"/jobs/{quote(text, safe='')}")
        return self.joined(self.of("/jobs"), text)

    def joined(self, asked: str, named: str) -> str:
        """What an answer of `asked` means by `named`. Source: RFC 3986, section 5.

        Raises: ClientError: it leads to another origin.
        """
        if not _PLAIN.fullmatch(named):
            raise ClientError(f"{named[:80]!r} is no address")
        try:
            url = urljoin(asked, named).partition("#")[0]
        except ValueError:
            raise ClientError(f"{named[:80]!r} is no address") from None
        if _origin(url) != self._origin:
            raise ClientError(f"{_shown(url)} is not at {_shown(self.url)}; nothing is asked there")
        return url


def job_id(url: str) -> str:
    """The last segment of a job's address."""
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])


def _origin(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ClientError("the address cannot be read") from None
    if not _PLAIN.fullmatch(url) or "\\" in url or parts.scheme not in _PORTS or not parts.hostname:
        raise ClientError("an address must be http:// or https://, a host, perhaps a port and a path")
    if "@" in parts.netloc:
        raise ClientError("an address must not hold a user or a password; an API key is given as api_key")
    return parts.scheme, parts.hostname.rstrip("."), port or _PORTS[parts.scheme]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:200]
