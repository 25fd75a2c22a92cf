"""Which network addresses may be called: the public ones, and those that a setting allows.

The table is our own. `ipaddress.is_global` differs between Python versions and calls some translated
forms of private addresses global, so it is not asked. This file judges; it resolves and opens nothing.

Source: IANA IPv4 and IPv6 Special-Purpose Address Registries (as of 2025-10-09), IANA IPv6 Address Space
(global unicast is 2000::/3), RFC 5771 and RFC 4291 (multicast).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from aj.settings import Allowed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# A block is refused whole, also where the registry marks a small part of it as reachable, such as the
# anycast addresses in 192.0.0.0/24 and 2001::/23: nobody receives webhooks there.
NOT_PUBLIC = tuple(
    (ipaddress.ip_network(block), name)
    for block, name in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private use"),
        ("100.64.0.0/10", "shared address space"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private use"),
        ("192.0.0.0/24", "IETF protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay, deprecated"),
        ("192.168.0.0/16", "private use"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved or broadcast"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard-only"),
        ("100:0:0:1::/64", "dummy prefix"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "IETF protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")

# Hosts that are IPv6-only reach IPv4 through this prefix, and their resolver writes it into its answers,
# so it is judged by the IPv4 address within. Source: RFC 6052 section 2.1, RFC 6147.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

# Services that hand a machine's credentials to whoever can reach them from it.
METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google, Oracle, OpenStack, DigitalOcean, Hetzner and others
        "169.254.170.2",  # AWS ECS task credentials
        "169.254.170.23",  # AWS EKS pod identity
        "169.254.42.42",  # Scaleway
        "169.254.0.23",  # Tencent Cloud
        "100.100.100.200",  # Alibaba Cloud
        "168.63.129.16",  # Azure platform (wire server); a public block, reachable from inside only
        "192.0.0.192",  # Oracle Cloud, classic
        "fd00:ec2::254",  # AWS
        "fd00:ec2::23",  # AWS EKS pod identity
        "fd20:ce::254",  # Google
        "fd00:42::42",  # Scaleway
        "fd00:c1::a9fe:a9fe",  # Oracle Cloud
        "fd00:a9fe:a9fe::1",  # Akamai (Linode)
        "fe80::a9fe:a9fe",  # OpenStack
    )
)

# Where an IPv6 address may carry an IPv4 address, as byte positions: 6to4, then the six prefix lengths of
# NAT64 from 32 to 96; the last also fits mapped, compatible, translated and ISATAP addresses, the first of
# the six Teredo's server. Source: RFC 3056 section 2, RFC 6052 section 2.2, RFC 4380 section 4.
EMBEDDED_AT = (
    (2, 3, 4, 5),
    (4, 5, 6, 7),
    (5, 6, 7, 9),
    (6, 7, 9, 10),
    (7, 9, 10, 11),
    (9, 10, 11, 12),
    (12, 13, 14, 15),
)


def why_refused(address: Address, port: int, allowed: Iterable[Allowed], host_allowed: bool = False) -> str | None:
    """Why `address` may not be called on `port`, or None where it may.

    `host_allowed` says that the host name which led here is allowed by a setting: then its address
    need not be public. A metadata address is refused whatever is allowed.
    """
    if any(each in METADATA for each in _spelled_by(address)):
        return "a cloud metadata address, which is never called"
    if host_allowed or any(
        entry.network is not None and address in entry.network and entry.port in (None, port) for entry in allowed
    ):
        return None
    name = _not_public(address)
    return None if name is None else f"not a public address ({name}), and this server does not allow it"


def _not_public(address: Address) -> str | None:
    """The name of the special-purpose block that holds `address`, or None where it is public."""
    if address in NAT64:
        inner = _not_public(ipaddress.IPv4Address(address.packed[12:]))
        return None if inner is None else f"NAT64 of {inner}"
    for block, name in NOT_PUBLIC:
        if address in block:
            return name
    if address.version == 6 and address not in GLOBAL_UNICAST:
        return "outside global unicast"
    return None


def _spelled_by(address: Address) -> Iterator[Address]:
    """`address` without its zone, and each IPv4 address that it may be a spelling of.

    All positions are tried on every IPv6 address, since the NAT64 prefix of a network can be any prefix.
    """
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        return
    packed = address.packed
    yield ipaddress.IPv6Address(packed)
    for places in EMBEDDED_AT:
        yield ipaddress.IPv4Address(bytes(packed[place] for place in places))
    yield ipaddress.IPv4Address(bytes(byte ^ 0xFF for byte in packed[12:]))  # Teredo's client is inverted
