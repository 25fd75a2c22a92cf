"""An API behind a certificate of its own authority: it is played as any other, and what is not trusted is not asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aj.check.command import check
from aj.check.point import Level, State
from aj.check.points import ALL
from aj.check.run import run
from aj.check.scene import Scene
from tests.check.door import API_KEY, serving
from tests.check.playing import names, options
from tests.check.rude import rude, saying
from tests.support.certificates import self_signed


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


def _check(url: str, **env: str) -> Result:
    return CliRunner().invoke(check, [url, "--level", "basic"], env={"AJ_API_KEY": API_KEY, **env})


def test_a_server_with_an_authority_of_its_own_is_played(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All holds, webhooks included, but for what cannot be played over TLS."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(certificate=certificate) as url, Scene(options(url)) as scene:
        outcome = run(scene, ALL, Level.COMPLETE, lambda _: None)
    assert (names(outcome, State.BROKEN), outcome.unplayable) == ({}, "")
    assert set(names(outcome, State.SKIPPED)) == {"cut-body"}


def test_what_is_not_trusted_is_not_asked(certificate: Path) -> None:
    """Exit code 3 with the reason and the way out; no point is named."""
    with serving(certificate=certificate) as url:
        unknown = _check(url)
        renamed = _check(url.replace("127.0.0.1", "localhost"), SSL_CERT_FILE=str(certificate))
    assert (unknown.exit_code, renamed.exit_code) == (3, 3)
    assert "its certificate is not trusted (self" in unknown.output
    assert "SSL_CERT_FILE names a file" in unknown.output
    assert "its certificate is not trusted (Hostname mismatch" in renamed.output
    assert "BROKEN" not in unknown.output + renamed.output


def test_a_server_without_tls_is_told_so() -> None:
    """Whoever writes https for http has made no point broken."""
    with rude(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url:
        result = _check(url.replace("http:", "https:"))
    assert (result.exit_code, "it does not speak TLS as we do" in result.output) == (3, True), result.output
    assert "BROKEN" not in result.output
