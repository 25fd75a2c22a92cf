"""Reads and judges a URL that we were given, before anything is resolved or opened.

It takes less than the standards do: whatever two parsers could read in two ways is refused, not repaired.
The parts found here are the ones that are used to connect, so no second parser decides where bytes go.

Source: RFC 3986 section 3, RFC 9110 section 4.2, RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from aj.egress.address import Address, why_refused
from aj.errors import AddressRefused
from aj.settings import Allowed

URL_MOST_CHARS = 2048
NAME_MOST_CHARS = 253
DEFAULT_PORTS = {"http": 80, "https": 443}

# Names that by their norm, or by the habit of /etc/hosts and clouds, lead into this host or its network.
LOCAL_NAMES = frozenset({"localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback", "home.arpa"})
LOCAL_SUFFIXES = (
    *(".localhost", ".localdomain", ".localdomain4", ".localdomain6"),
    *(".local", ".internal", ".home.arpa"),
)

METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.tencentyun.com",
        "metadata.packet.net",
        "metadata.platformequinix.com",
        "api.metadata.cloud.ibm.com",
        "rancher-metadata",
    }
)

_CHARACTERS = re.compile(r"[\x21-\x5b\x5d-\x7e]*")  # visible ASCII without the backslash
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?]*)(?P<path>.*)")
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>.*))?")
_PORT = re.compile(r"[0-9]{1,5}")
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
# A last label like this makes the host an IPv4 address to inet_aton and to browsers, in any of its spellings.
_NUMERIC_END = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL leads.

    `host` is a name in lower case without a trailing dot, or an address in its usual spelling, without
    brackets; `address` is that address. `path` is the rest of the URL, query included, maybe empty.
    """

    scheme: str
    host: str
    port: int
    address: Address | None
    path: str

    @property
    def endpoint(self) -> str:
        """The receiver as `host:port`, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL again, with its port written out."""
        return f"{self.scheme}://{self.endpoint}{self.path}"


def read(url: str) -> Target:
    """The parts of `url`.

    Raises: AddressRefused: it is not an absolute http or https URL, or is written in a doubtful way.
    """
    _check_text(url)
    match = _URL.fullmatch(url)
    if match is None or match["scheme"].lower() not in DEFAULT_PORTS:
        raise AddressRefused("the URL must be absolute and begin with http:// or https://")
    scheme, authority = match["scheme"].lower(), match["authority"]
    if "@" in authority:
        raise AddressRefused("the URL has user information before its host (@), which is not sent; leave it out")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise AddressRefused("the URL's host is malformed")
    port = DEFAULT_PORTS[scheme] if parts["port"] is None else _read_port(parts["port"])
    host, address = _read_name(parts["name"]) if parts["v6"] is None else _read_v6(parts["v6"])
    return Target(scheme, host, port, address, match["path"])


def judge(target: Target, allowed: Iterable[Allowed]) -> None:
    """Refuses what can be refused without resolving a name.

    Raises: AddressRefused: the address is not public, or the name is local by its form, and no setting allows it.
    """
    if target.address is not None:
        reason = why_refused(target.address, target.port, allowed)
        if reason is not None:
            raise AddressRefused(f"{target.endpoint} is {reason}")
    elif target.host in METADATA_NAMES:
        raise AddressRefused(f"{target.host} is a name of a cloud metadata service, which is never called")
    elif (target.host in LOCAL_NAMES or target.host.endswith(LOCAL_SUFFIXES)) and not host_allowed(target, allowed):
        raise AddressRefused(f"{target.endpoint} is a local name, and this server does not allow it")


def host_allowed(target: Target, allowed: Iterable[Allowed]) -> bool:
    """Whether a setting allows the target's host by name, on the target's port."""
    return target.address is None and any(
        entry.host == target.host and entry.port in (None, target.port) for entry in allowed
    )


def _check_text(url: object) -> None:
    if not isinstance(url, str):
        raise AddressRefused("the URL must be a string")
    if not 1 <= len(url) <= URL_MOST_CHARS:
        raise AddressRefused(f"the URL has {len(url)} characters; 1 to {URL_MOST_CHARS} are accepted")
    if not _CHARACTERS.fullmatch(url):
        raise AddressRefused(
            "the URL has white space, a control character, a backslash or a character outside ASCII; "
            "percent-encode it, or write an international host name in its xn-- form"
        )
    if "#" in url:
        raise AddressRefused("the URL has a fragment (#), which is never sent; leave it out")


def _read_port(text: str) -> int:
    if not _PORT.fullmatch(text) or not 1 <= int(text) <= 65_535:
        raise AddressRefused("the URL's port is not a number from 1 to 65535")
    return int(text)


def _read_v6(text: str) -> tuple[str, Address]:
    if "%" in text:
        raise AddressRefused("the URL's IPv6 address has a zone, which means nothing to another host")
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        raise AddressRefused("the URL has brackets around something that is not an IPv6 address") from None
    return address.compressed, address


def _read_name(text: str) -> tuple[str, Address | None]:
    host = text.lower().removesuffix(".")
    if _NUMERIC_END.fullmatch(host):
        return text, _read_v4(text)
    if len(host) > NAME_MOST_CHARS or not _NAME.fullmatch(host):
        raise AddressRefused(
            "the URL's host is empty or not a host name: labels of 1 to 63 letters, digits, - and _, "
            f"joined by dots, {NAME_MOST_CHARS} characters in all"
        )
    return host, None


def _read_v4(text: str) -> ipaddress.IPv4Address:
    """Only the usual spelling: 0177.0.0.1 is 127.0.0.1 to some programs and 177.0.0.1 to others."""
    try:
        return ipaddress.IPv4Address(text)
    except ValueError:
        raise AddressRefused(
            "the URL's host ends in a number, so it is an IPv4 address, but it is not written as four decimal "
            "numbers from 0 to 255 without leading zeros, such as 192.0.2.1"
        ) from None
