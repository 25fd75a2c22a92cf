"""What `check_url` says to each way to spell an address. To extend a table, add a row."""

from __future__ import annotations

import socket

import pytest

from aj.egress import Egress
from aj.errors import AddressRefused
from tests.unit.egress_receivers import allowing

# fmt: off
PUBLIC_HOSTS = [
    "example.com", "EXAMPLE.com", "example.com.", "a.b-c.example", "xn--bcher-kva.example", "under_score.example",
    "8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15", "192.31.196.1",
    "[2001:4860:4860::8888]", "[2001:200::1]", "[2606:4700::1111]", "[2A00:1450::1]", "[64:ff9b::8.8.8.8]",
    "localhost.example", "notlocalhost", "metadata.example", "internal.example.com", "0x7f000001.example", "1.example",
    "a1", "127.0.0.1.nip.io", "deadbeef", "0xg", "1e3",
]
# fmt: on

# The first column is the host, the second a word of the reason that its author is told.
REFUSED_HOSTS = [
    # loopback, in every spelling that some program understands
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("127.0.0.1.", "leading zeros"),
    ("127.1", "leading zeros"),
    ("127.0.1", "leading zeros"),
    ("127.0.0.1.1", "leading zeros"),
    ("2130706433", "leading zeros"),
    ("2130706433.", "leading zeros"),
    ("017700000001", "leading zeros"),
    ("0177.0.0.1", "leading zeros"),
    ("0177.0.0.01", "leading zeros"),
    ("00000177.0.0.1", "leading zeros"),
    ("127.0.0.01", "leading zeros"),
    ("0x7f000001", "leading zeros"),
    ("0X7F000001", "leading zeros"),
    ("0x7f.0.0.1", "leading zeros"),
    ("0x7f.1", "leading zeros"),
    ("127.0x1", "leading zeros"),
    ("127.0.0.0x1", "leading zeros"),
    ("0x7f.0.0.0x1", "leading zeros"),
    ("0177.0x0.0.1", "leading zeros"),
    ("0x", "leading zeros"),
    ("0x7f.0.0.0x", "leading zeros"),
    ("0", "leading zeros"),
    ("00", "leading zeros"),
    ("1", "leading zeros"),
    ("4294967295", "leading zeros"),
    ("4294967296", "leading zeros"),
    ("99999999999999999999", "leading zeros"),
    ("6425673729", "leading zeros"),  # 127.0.0.1 where 32 bits overflow
    ("256.256.256.256", "leading zeros"),
    ("383.0.0.1", "leading zeros"),  # 127.0.0.1 where 8 bits overflow
    ("1.2.3", "leading zeros"),
    ("1.2.3.", "leading zeros"),
    ("1.2.3.4.5", "leading zeros"),
    ("foo.1", "leading zeros"),
    ("foo.0x1", "leading zeros"),
    ("1..1", "leading zeros"),
    ("127.0.0.1..", "host name"),
    ("0x7f.0x0.0x0.0x1", "leading zeros"),
    ("8.8.8.8.", "leading zeros"),
    ("134744072", "leading zeros"),
    ("-1", "host name"),
    ("+127.0.0.1", "leading zeros"),
    ("%31%32%37.0.0.1", "leading zeros"),
    ("127.0.0.1%00", "host name"),
    ("127.0.0.1,8.8.8.8", "leading zeros"),
    ("127。0。0。1", "ASCII"),
    ("\uff11\uff12\uff17.0.0.1", "ASCII"),
    ("①②⑦.0.0.1", "ASCII"),
    ("\u0660.0.0.1", "ASCII"),
    # other special-purpose IPv4
    ("0.0.0.0", "this network"),
    ("0.1.2.3", "this network"),
    ("10.0.0.1", "private use"),
    ("10.255.255.255", "private use"),
    ("100.64.0.1", "shared address space"),
    ("100.127.255.255", "shared address space"),
    ("169.254.1.1", "link-local"),
    ("172.16.0.1", "private use"),
    ("172.31.255.255", "private use"),
    ("192.0.0.8", "IETF"),
    ("192.0.0.9", "IETF"),
    ("192.0.0.170", "IETF"),
    ("192.0.2.1", "documentation"),
    ("192.88.99.1", "6to4 relay"),
    ("192.168.0.1", "private use"),
    ("198.18.0.1", "benchmarking"),
    ("198.19.255.255", "benchmarking"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    # IPv6
    ("[::1]", "loopback"),
    ("[0:0:0:0:0:0:0:1]", "loopback"),
    ("[0000:0000:0000:0000:0000:0000:0000:0001]", "loopback"),
    ("[::0.0.0.1]", "loopback"),
    ("[::]", "unspecified"),
    ("[::2]", "IPv4-compatible"),
    ("[::127.0.0.1]", "IPv4-compatible"),
    ("[::7f00:1]", "IPv4-compatible"),
    ("[::ffff:127.0.0.1]", "IPv4-mapped"),
    ("[::ffff:7f00:1]", "IPv4-mapped"),
    ("[::FFFF:127.0.0.1]", "IPv4-mapped"),
    ("[0:0:0:0:0:ffff:10.0.0.1]", "IPv4-mapped"),
    ("[::ffff:8.8.8.8]", "IPv4-mapped"),
    ("[::ffff:0:127.0.0.1]", "IPv4-translated"),
    ("[64:ff9b::127.0.0.1]", "NAT64 of loopback"),
    ("[64:ff9b::10.0.0.1]", "NAT64 of private use"),
    ("[64:ff9b::7f00:1]", "NAT64 of loopback"),
    ("[64:ff9b:1::8.8.8.8]", "local NAT64"),
    ("[64:ff9b:1:fffe::10.0.0.1]", "local NAT64"),
    ("[64:ff9b:2::1]", "outside global unicast"),
    ("[100::1]", "discard-only"),
    ("[100:0:0:1::1]", "dummy prefix"),
    ("[100:0:0:2::1]", "outside global unicast"),
    ("[2001::1]", "Teredo"),
    ("[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "Teredo"),
    ("[2001:1::1]", "IETF"),
    ("[2001:2::1]", "IETF"),
    ("[2001:10::1]", "IETF"),
    ("[2001:20::1]", "IETF"),
    ("[2001:db8::1]", "documentation"),
    ("[2002:7f00:1::]", "6to4"),
    ("[2002:808:808::1]", "6to4"),
    ("[3fff::1]", "documentation"),
    ("[3fff:fff::1]", "documentation"),
    ("[4000::1]", "outside global unicast"),
    ("[5f00::1]", "segment routing"),
    ("[fc00::1]", "unique local"),
    ("[fd12:3456::1]", "unique local"),
    ("[fe80::1]", "link-local"),
    ("[fe80::5efe:127.0.0.1]", "link-local"),
    ("[fec0::1]", "site-local"),
    ("[feff::1]", "site-local"),
    ("[ff02::1]", "multicast"),
    ("[fe80::1%25eth0]", "zone"),
    ("[fe80::1%eth0]", "zone"),
    ("[::1%25lo]", "zone"),
    ("[::1%]", "zone"),
    ("[]", "not an IPv6"),
    ("[127.0.0.1]", "not an IPv6"),
    ("[v1.fe80]", "not an IPv6"),
    ("[::1::]", "not an IPv6"),
    ("[:::1]", "not an IPv6"),
    ("[12345::]", "not an IPv6"),
    ("[::ffff:0177.0.0.1]", "not an IPv6"),
    ("[::ffff:127.1]", "not an IPv6"),
    ("[1:2:3:4:5:6:7:8:9]", "not an IPv6"),
    ("[example.com]", "not an IPv6"),
    ("[::1", "malformed"),
    ("::1]", "port"),
    ("[[::1]]", "malformed"),
    ("[::1]x", "malformed"),
    ("x[::1]", "malformed"),
    ("::1", "port"),
    ("fe80::1", "port"),
    # metadata services
    ("169.254.169.254", "metadata"),
    ("169.254.170.2", "metadata"),
    ("100.100.100.200", "metadata"),
    ("168.63.129.16", "metadata"),
    ("192.0.0.192", "metadata"),
    ("[fd00:ec2::254]", "metadata"),
    ("[::ffff:169.254.169.254]", "metadata"),
    ("[::ffff:a9fe:a9fe]", "metadata"),
    ("[::169.254.169.254]", "metadata"),
    ("[64:ff9b::169.254.169.254]", "metadata"),
    ("[2002:a9fe:a9fe::1]", "metadata"),
    ("0xa9fea9fe", "leading zeros"),
    ("2852039166", "leading zeros"),
    ("0251.0376.0251.0376", "leading zeros"),
    ("metadata.google.internal", "metadata"),
    ("Metadata.Google.Internal.", "metadata"),
    ("metadata", "metadata"),
    ("metadata.goog", "metadata"),
    ("instance-data", "metadata"),
    # names that stay at home
    ("localhost", "local name"),
    ("LOCALHOST", "local name"),
    ("localhost.", "local name"),
    ("foo.localhost", "local name"),
    ("a.b.localhost.", "local name"),
    ("localhost.localdomain", "local name"),
    ("localhost6", "local name"),
    ("localhost6.localdomain6", "local name"),
    ("ip6-localhost", "local name"),
    ("ip6-loopback", "local name"),
    ("printer.local", "local name"),
    ("vault.internal", "local name"),
    ("host.docker.internal", "local name"),
    ("nas.home.arpa", "local name"),
    ("home.arpa", "local name"),
    # not a host
    ("", "host name"),
    (".", "host name"),
    ("..", "host name"),
    (".example.com", "host name"),
    ("example..com", "host name"),
    ("example.com..", "host name"),
    ("-a.example.com", "host name"),
    ("a-.example.com", "host name"),
    ("*.example.com", "host name"),
    ("exa%6dple.com", "host name"),
    ("example.com%00.evil.example", "host name"),
    ("a" * 64 + ".example", "host name"),
    (".".join(["a" * 60] * 5), "host name"),
    ("exa'mple.com", "host name"),
    ("{host}", "host name"),
    ("bücher.example", "ASCII"),
    ("exam\u200bple.com", "ASCII"),
    ("ⓔxample.com", "ASCII"),
    ("127.0.0.1\u3002", "ASCII"),
]

REFUSED_URLS = [
    ("", "characters"),
    ("/hook", "absolute"),
    ("//example.com/hook", "absolute"),
    ("example.com/hook", "absolute"),
    ("example.com:80/hook", "absolute"),
    ("http:/example.com", "absolute"),
    ("http:example.com", "absolute"),
    ("http//example.com", "absolute"),
    ("http:///example.com", "host name"),
    ("http://", "host name"),
    ("http://:80/", "host name"),
    ("http://?x=example.com", "host name"),
    ("ftp://example.com/", "http"),
    ("file:///etc/passwd", "http"),
    ("gopher://127.0.0.1:6379/_FLUSHALL", "http"),
    ("javascript:alert(1)", "absolute"),
    ("data:text/plain,x", "absolute"),
    ("unix:///run/docker.sock", "http"),
    ("http+unix://%2Frun%2Fdocker.sock/", "http"),
    ("ws://example.com/", "http"),
    ("jar:http://example.com!/", "absolute"),
    ("url:http://example.com/", "absolute"),
    (" http://example.com/", "white space"),
    ("http://example.com/ ", "white space"),
    ("http://example.com/a b", "white space"),
    ("http://exam\tple.com/", "white space"),
    ("http://example.com/\r\nX-Injected: 1", "white space"),
    ("http://example.com/\x00", "control"),
    ("http://example.com/\x7f", "control"),
    ("http://example.com/\n", "control"),
    ("http:\\\\example.com\\", "backslash"),
    ("http://example.com\\@127.0.0.1/", "backslash"),
    ("http://example.com/ü", "ASCII"),
    ("http://example.com/\ud800", "ASCII"),
    ("http://example.com/#", "fragment"),
    ("http://example.com/#top", "fragment"),
    ("http://127.0.0.1#@example.com/", "fragment"),
    ("http://example.com#@127.0.0.1/", "fragment"),
    ("http://user@example.com/", "user information"),
    ("http://user:pass@example.com/", "user information"),
    ("http://:@example.com/", "user information"),
    ("http://@example.com/", "user information"),
    ("http://example.com@127.0.0.1/", "user information"),
    ("http://example.com:80@127.0.0.1:81/", "user information"),
    ("http://127.0.0.1:80@example.com/", "user information"),
    ("http://a@b@example.com/", "user information"),
    ("http://example.com:/", "port"),
    ("http://example.com:0/", "port"),
    ("http://example.com:65536/", "port"),
    ("http://example.com:99999999999/", "port"),
    ("http://example.com:-1/", "port"),
    ("http://example.com:+80/", "port"),
    ("http://example.com:abc/", "port"),
    ("http://example.com:8_0/", "port"),
    ("http://example.com:80:80/", "port"),
    ("http://example.com:0x50/", "port"),
    ("http://[2001:4860::1]:/", "port"),
    ("http://[2001:4860::1]80/", "malformed"),
    ("http://example.com/" + "a" * 2048, "2048"),
]

ENDPOINTS = [
    ("http://example.com", "example.com:80"),
    ("https://example.com/x?y=1", "example.com:443"),
    ("HTTPS://Example.COM:8443/x", "example.com:8443"),
    ("http://example.com./", "example.com:80"),
    ("http://example.com:0080/", "example.com:80"),
    ("http://example.com?x@y", "example.com:80"),
    ("http://example.com/a@b:c", "example.com:80"),
    ("https://8.8.8.8", "8.8.8.8:443"),
    ("https://[2001:4860:4860:0:0:0:0:8888]/", "[2001:4860:4860::8888]:443"),
    ("https://example.com:1/", "example.com:1"),
    ("https://example.com:65535/", "example.com:65535"),
    ("http://127.0.0.1:8141/hook", "127.0.0.1:8141"),
    ("http://example.com/" + "a" * 2029, "example.com:80"),
]


@pytest.fixture
def egress(monkeypatch: pytest.MonkeyPatch) -> Egress:
    """An egress with the default settings, in a world where any look-up is a failure of the test."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a name was resolved")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    return Egress(allowing("127.0.0.1:8141"), 5.0, "aj/test", never)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", PUBLIC_HOSTS)
def test_a_public_host_is_accepted(egress: Egress, host: str) -> None:
    """A name that is not local, and an address that is public, pass."""
    assert egress.check_url(f"https://{host}/hook")


@pytest.mark.parametrize(("host", "word"), REFUSED_HOSTS)
def test_a_host_that_may_not_be_called_is_refused(egress: Egress, host: str, word: str) -> None:
    """The message names the rule, whatever port is given and however the scheme is written."""
    for url in (f"http://{host}/", f"HTTPS://{host}:8443/hook?x=1", f"http://{host}"):
        with pytest.raises(AddressRefused, match="(?i)" + word):
            egress.check_url(url)


@pytest.mark.parametrize(("url", "word"), REFUSED_URLS)
def test_a_malformed_url_is_refused(egress: Egress, url: str, word: str) -> None:
    """What two parsers could read in two ways is not repaired."""
    with pytest.raises(AddressRefused, match="(?i)" + word):
        egress.check_url(url)


@pytest.mark.parametrize("url", [None, 5, True, b"http://example.com/", ["http://example.com/"], {}])
def test_something_that_is_not_text_is_refused(egress: Egress, url: object) -> None:
    """JSON has other types than strings."""
    with pytest.raises(AddressRefused, match="string"):
        egress.check_url(url)  # type: ignore[arg-type]


@pytest.mark.parametrize(("url", "endpoint"), ENDPOINTS)
def test_a_url_gives_the_endpoint_to_count_calls_by(egress: Egress, url: str, endpoint: str) -> None:
    """Host in lower case, default port filled in, IPv6 in brackets and in its shortest form."""
    assert egress.check_url(url) == endpoint


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "127.1", "localhost"])
@pytest.mark.parametrize("port", [80, 8140, 8142, 6379])
def test_an_allowed_port_does_not_open_its_neighbours(egress: Egress, host: str, port: int) -> None:
    """AJ_CALLBACK_ALLOW=127.0.0.1:8141 is one port of one address."""
    with pytest.raises(AddressRefused):
        egress.check_url(f"http://{host}:{port}/")


def test_an_allowed_address_is_accepted_in_its_usual_spelling_only(egress: Egress) -> None:
    """A setting opens an address, not the tricks by which it can be written."""
    assert egress.check_url("http://127.0.0.1:8141/") == "127.0.0.1:8141"
    for host in ("2130706433", "127.1", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "[::1]"):
        with pytest.raises(AddressRefused):
            egress.check_url(f"http://{host}:8141/")


@pytest.mark.parametrize(
    ("allow", "accepted", "refused"),
    [
        ("10.0.0.0/8", "http://10.1.2.3:9/", "http://11.0.0.1.:9/"),
        ("10.0.0.0/8:443", "https://10.1.2.3/", "http://10.1.2.3/"),
        ("[fd12::/16]:8080", "http://[fd12::5]:8080/", "http://[fd12::5]/"),
        ("localhost", "http://LOCALHOST.:5000/", "http://foo.localhost:5000/"),
        ("localhost:5000", "http://localhost:5000/", "http://localhost/"),
        ("hooks.internal:80", "http://hooks.internal/", "https://hooks.internal/"),
        ("vault.internal", "http://vault.internal/", "http://x.vault.internal/"),
    ],
)
def test_a_setting_opens_what_it_names_and_nothing_beside_it(allow: str, accepted: str, refused: str) -> None:
    """Networks, names and ports of AJ_CALLBACK_ALLOW are each taken at their word."""
    egress = Egress(allowing(allow), 5.0, "aj/test")
    assert egress.check_url(accepted)
    with pytest.raises(AddressRefused):
        egress.check_url(refused)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "169.254.42.42",
        "169.254.0.23",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "[fd00:ec2::254]",
        "[fd00:ec2::23]",
        "[fd20:ce::254]",
        "[fd00:42::42]",
        "[fd00:c1::a9fe:a9fe]",
        "[fd00:a9fe:a9fe::1]",
        "[fe80::a9fe:a9fe]",
        "[::169.254.169.254]",
        "[::ffff:169.254.169.254]",
        "[::ffff:0:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b::100.100.100.200]",
        "[64:ff9b:1::169.254.169.254]",
        "[64:ff9b:1:a9fe:a9:fe00::]",  # NAT64 with a prefix of 48 bits
        "[2002:a9fe:a9fe::1]",
        "[2001:0:a9fe:a9fe::1]",  # Teredo, the server
        "[2001:0:808:808::5601:5601]",  # Teredo, the client
        "[2a00:1450::a9fe:a9fe]",  # NAT64 with a network's own prefix
        "[2a00:1450:0:0:a9:fea9:fe00:0]",  # the same with 64 bits
        "metadata.google.internal",
        "metadata.tencentyun.com",
        "metadata",
    ],
)
def test_a_metadata_service_is_refused_whatever_is_allowed(host: str) -> None:
    """Neither a network that holds it nor its own name opens it."""
    egress = Egress(allowing(f"0.0.0.0/0,[::/0],{host}"), 5.0, "aj/test")
    with pytest.raises(AddressRefused, match="metadata"):
        egress.check_url(f"http://{host}/latest/meta-data/")


def test_a_refusal_does_not_repeat_a_password(egress: Egress) -> None:
    """The message may be logged."""
    with pytest.raises(AddressRefused) as caught:
        egress.check_url("http://user:hunter2@example.com/")
    assert "hunter2" not in str(caught.value)


def test_a_long_hostile_url_is_judged_quickly(egress: Egress) -> None:
    """No pattern here backtracks: a URL of the greatest length takes milliseconds, whatever is in it."""
    for filling in ("a.", "1.", "0x.", "-", "[", ":", "%", "a" * 63 + "."):
        url = ("http://" + filling * 2048)[:2048]
        for _ in range(20):
            with pytest.raises(AddressRefused):
                egress.check_url(url)
