"""The lines that docs/webhooks.md shows to receivers judge what we sign as it says."""

from __future__ import annotations

import base64
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, request

from aj import clock
from aj.signature import decode_secret, sign
from tests.architecture.tree import ROOT

PAGE = (ROOT / "docs/webhooks.md").read_text("utf-8")
SECRET, OTHER = ("whsec_" + base64.b64encode(key * 32).decode() for key in (b"s", b"o"))
BODY = '{"type": "job.succeeded", "text": "é 日本"}'.encode()

IsGenuine = Callable[[str, Any, bytes], bool]


@pytest.fixture
def is_genuine(tmp_path: Path) -> IsGenuine:
    """The page's only Python example, as it stands."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "recipe.py").write_text(code, "utf-8")
    recipe: IsGenuine = runpy.run_path(str(tmp_path / "recipe.py"))["is_genuine"]
    return recipe


def headers(*secrets: str, age_s: int = 0) -> dict[str, str]:
    """What comes with `BODY` from a sender with these secrets who signed it so many seconds ago."""
    sent_at = clock.now_ms() // 1000 - age_s
    signature = sign(map(decode_secret, secrets), "msg_1", sent_at, BODY)
    return {"webhook-id": "msg_1", "webhook-timestamp": str(sent_at), "webhook-signature": signature}


@pytest.mark.parametrize("secrets", [(SECRET,), (SECRET, OTHER), (OTHER, SECRET)])
def test_what_we_sign_is_genuine(is_genuine: IsGenuine, secrets: tuple[str, ...]) -> None:
    """Also where it is signed with another secret as well."""
    assert is_genuine(SECRET, headers(*secrets), BODY) is True


def test_another_secret_or_body_is_not(is_genuine: IsGenuine) -> None:
    """A signature says who, and what."""
    assert is_genuine(SECRET, headers(OTHER), BODY) is False
    assert is_genuine(SECRET, headers(SECRET), BODY + b" ") is False


@pytest.mark.parametrize(("age_s", "is_taken"), [(240, True), (360, False), (-240, True), (-360, False)])
def test_an_old_one_is_not(is_genuine: IsGenuine, age_s: int, is_taken: bool) -> None:
    """Five minutes in either direction, with a minute of room for this test."""
    assert is_genuine(SECRET, headers(SECRET, age_s=age_s), BODY) is is_taken


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", [None, "", "é", "v1,AAAA", "2"])
def test_a_header_that_is_missing_or_wrong_is_no_fault(is_genuine: IsGenuine, name: str, value: str | None) -> None:
    """Whoever sends nonsense gets a plain no."""
    given = headers(SECRET)
    if value is None:
        del given[name]
    else:
        given[name] = value
    assert is_genuine(SECRET, given, BODY) is False


def test_it_takes_the_headers_and_the_body_of_a_request_in_flask(is_genuine: IsGenuine) -> None:
    """As the page says, whatever the case of the names."""
    given = {name.title(): value for name, value in headers(SECRET).items()}
    with Flask(__name__).test_request_context(method="POST", headers=given, data=BODY):
        assert is_genuine(SECRET, request.headers, request.get_data()) is True


def test_the_example_for_other_languages_is_what_we_sign() -> None:
    """Secret, id, timestamp and body give the signature that the page names."""
    found = re.search(r"secret `(.+?)`, the id `(.+?)`, the timestamp `(\d+)` and the body `(.+?)` give `(.+?)`", PAGE)
    assert found is not None
    secret, webhook_id, timestamp, body, signature = found.groups()
    assert sign([decode_secret(secret)], webhook_id, int(timestamp), body.encode()) == signature
