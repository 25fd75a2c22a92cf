"""What `check_url` says to each way to spell an address."""

from __future__ import annotations

import socket

import pytest

from aj.egress import Egress
from aj.errors import AddressRefused
from tests.unit.egress_receivers import allowing
from tests.unit.egress_spellings import PUBLIC_HOSTS, REFUSED_HOSTS

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


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refusal_names_the_port_too(egress: Egress, host: str) -> None:
    """Since another port of the same host may be allowed."""
    with pytest.raises(AddressRefused, match=rf"^{host}:8142 is .+, and this server does not allow it$"):
        egress.check_url(f"http://{host}:8142/")


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
