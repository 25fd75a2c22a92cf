"""The lines that docs/webhooks.md shows to receivers judge what we sign as it says, in Python and in Node."""

from __future__ import annotations

import base64
import json
import re
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, request

from aj import clock
from aj.signature import decode_secret, sign
from tests.support.markdown import blocks_of
from tests.support.tools import require_tools

FILES = {block.words[1]: block.text for block in blocks_of("docs/webhooks.md") if block.kind == "file"}
SECRET, OTHER = ("whsec_" + base64.b64encode(key * 32).decode() for key in (b"s", b"o"))
BODY = '{"type": "job.succeeded", "text": "é 日本"}'.encode()

IsGenuine = Callable[[str, Any, bytes], bool]


def in_python(folder: Path) -> IsGenuine:
    """The page's `verify.py` as it stands."""
    (folder / "verify.py").write_text(FILES["verify.py"], "utf-8")
    recipe: IsGenuine = runpy.run_path(str(folder / "verify.py"))["is_genuine"]
    return recipe


def in_node(folder: Path) -> IsGenuine:
    """The page's `verify.js` as it stands, asked in a process of Node."""
    require_tools("node")
    (folder / "verify.js").write_text(FILES["verify.js"], "utf-8")
    asked = """
        const [secret, headers, body] = JSON.parse(require("node:fs").readFileSync(0));
        console.log(require("./verify.js").isGenuine(secret, headers, Buffer.from(body, "base64")));
    """

    def is_genuine(secret: str, headers: Any, body: bytes) -> bool:
        given = json.dumps([secret, headers, base64.b64encode(body).decode()])
        command = ["node", "-e", asked]
        done = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=True)
        return {"true": True, "false": False}[done.stdout.strip()]

    return is_genuine


@pytest.fixture(params=[in_python, in_node])
def is_genuine(request: pytest.FixtureRequest, tmp_path: Path) -> IsGenuine:
    made: IsGenuine = request.param(tmp_path)
    return made


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


def test_it_takes_the_headers_and_the_body_of_a_request_in_flask(tmp_path: Path) -> None:
    """As the page says, whatever the case of the names."""
    given = {name.title(): value for name, value in headers(SECRET).items()}
    with Flask(__name__).test_request_context(method="POST", headers=given, data=BODY):
        assert in_python(tmp_path)(SECRET, request.headers, request.get_data()) is True


def test_the_example_for_other_languages_is_what_we_sign() -> None:
    """Secret, id, timestamp and body give the signature that the page shows."""
    (body, secret, webhook_id, timestamp, signature) = next(
        found.groups()
        for block in blocks_of("docs/webhooks.md")
        if (found := re.match(r"\$ printf %s '(.+?)' \| sh sign\.sh (\S+) (\S+) (\d+)\n(\S+)", block.text))
    )
    assert sign([decode_secret(secret)], webhook_id, int(timestamp), body.encode()) == signature
