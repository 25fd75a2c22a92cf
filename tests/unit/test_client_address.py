"""Which addresses the client calls: those of the origin that it was given, and no other."""

from __future__ import annotations

import pytest

from aj.client.address import Base, job_id
from aj.client.errors import ClientError

ID = "01a22875-8ab0-7b86-a00f-efef3fad16ff"


@pytest.mark.parametrize("base", ["http://host", "http://host/", "https://host/api", "https://host:8443/a/b/"])
def test_an_id_is_a_job_below_the_place_where_the_api_is_mounted(base: str) -> None:
    """With or without a slash at its end."""
    assert Base(base).job(ID) == f"{base.rstrip('/')}/jobs/{ID}"


@pytest.mark.parametrize(
    ("base", "named", "url"),
    [
        ("http://host/api", f"/api/jobs/{ID}", f"http://host/api/jobs/{ID}"),
        ("http://host/api", f"jobs/{ID}", f"http://host/api/jobs/{ID}"),
        ("http://host/api", f"http://host/api/jobs/{ID}", f"http://host/api/jobs/{ID}"),
        ("http://host/api", f"//host/api/jobs/{ID}", f"http://host/api/jobs/{ID}"),
        ("http://host", f"HTTP://HOST:80/jobs/{ID}#top", f"http://HOST:80/jobs/{ID}"),
        ("https://host:443", f"https://host/jobs/{ID}", f"https://host/jobs/{ID}"),
        ("http://[::1]:8140", f"/jobs/{ID}", f"http://[::1]:8140/jobs/{ID}"),
    ],
)
def test_a_location_is_read_as_http_has_it(base: str, named: str, url: str) -> None:
    """Relative to what was asked, absolute, below a prefix."""
    assert Base(base).job(named) == url
    assert job_id(url) == ID


@pytest.mark.parametrize(
    "named",
    [
        *("http://other/jobs/1", "//other/jobs/1", "https://host/jobs/1", "http://host:81/jobs/1"),
        *("http://host@other/jobs/1", "http://user:word@host/jobs/1", "http://host.other/jobs/1"),
        *("file:///etc/passwd", "http://host\\@other/jobs/1", "http://host:x/jobs/1", "/jobs/ü"),
        *("/jobs/a b", "/jobs/1\r\nX: y", "http://[::1/jobs", "", ".", "..", "a\nb"),
    ],
)
def test_another_origin_is_refused(named: str) -> None:
    """Host, port and scheme are those that the key was given for."""
    with pytest.raises(ClientError):
        Base("http://host").job(named)


@pytest.mark.parametrize(
    "url",
    [
        *("", "host", "host:80", "ftp://host", "http://", "http://user@host", "http://u:p@host", "http://host?x"),
        *("http://host#x", "http://hö.de", "http://host:99999", "http://a b"),
    ],
)
def test_a_base_is_http_with_a_host_and_nothing_secret(url: str) -> None:
    """Else the client refuses to be made, and does not repeat a password."""
    with pytest.raises(ClientError) as caught:
        Base(url)
    assert "u:p" not in str(caught.value)


def test_a_password_is_in_no_refusal() -> None:
    """Neither that of a Location."""
    with pytest.raises(ClientError) as caught:
        Base("http://host").job("http://user:word@other/jobs/1")
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        *(
            ("http://localhost:8140", True),
            ("http://127.0.0.5", True),
            ("http://[::1]", True),
            ("http://a.localhost", True),
        ),
        *(("http://host", False), ("http://10.0.0.1", False), ("http://localhost.host", False)),
    ],
)
def test_it_is_known_what_is_this_machine(url: str, is_loopback: bool) -> None:
    """Such an address is not asked for at a proxy."""
    assert Base(url).is_loopback is is_loopback
