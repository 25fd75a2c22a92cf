"""The command: options, exit codes, the report in both forms, and servers that are none."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aj.check import command
from aj.check.command import check
from aj.check.points import ALL
from aj.cli import main
from tests.check.door import API_KEY, serving
from tests.check.rude import drip, hang, more_and_more_interim, pour, rude, saying
from tests.check.test_wire import SAID

NOBODY = "http://127.0.0.1:1"
MUCH_MORE_S = 60.0


def _check(*arguments: str, **env: str) -> Result:
    """What the command does; an exception of its own is one of the test too."""
    return CliRunner().invoke(check, arguments, env=env, catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "no base address"),
        (("ftp://127.0.0.1/",), "no base address"),
        (("http://",), "no base address"),
        (("http://a:99999/",), "no base address"),
        (("http://user:word@a/",), "no base address"),
        (("http://a/?q=1",), "no base address"),
        (("http://a..b",), "no base address"),
        ((f"http://{'a' * 64}/",), "no base address"),
        (("http://a b/",), "no base address"),
        (("http://a/pre fix",), "no base address"),
        (("http://a/\n",), "no base address"),
        (("http://ä.example/",), "no base address"),
        ((NOBODY, "--profile", "nobody's"), "aj, celery-flower, ogc-processes"),
        ((NOBODY, "--body", "{"), "--body is not JSON"),
        ((NOBODY, "--slow-body", "n=5"), "--slow-body is not JSON"),
        ((NOBODY, "--body", "NaN"), "--body cannot be sent as JSON"),
        ((NOBODY, "--failing-body", '{"n": -Infinity}'), "--failing-body cannot be sent as JSON"),
        ((NOBODY, "--body", "1e400"), "--body cannot be sent as JSON"),
        ((NOBODY, "--body", r'"\ud800"'), "--body cannot be sent as JSON"),
        ((NOBODY, "--path", "@elsewhere.invalid/"), "--path must begin with /"),
        ((NOBODY, "--slow-path", "/a b"), "--slow-path must be visible ASCII"),
        ((NOBODY, "--secret", "abc"), "whsec_"),
        ((NOBODY, "--timeout", "0"), "more than 0"),
        ((NOBODY, "--job-timeout", "nan"), "more than 0"),
        ((NOBODY, "--api-key", "a\nb"), "visible ASCII"),
        ((NOBODY, "--callback-host", "here:port"), "HOST:PORT"),
        ((NOBODY, "--callback-host", "here..there"), "HOST:PORT"),
        ((NOBODY, "--callback-host", "http://here/"), "HOST:PORT"),
        ((NOBODY, "--callback-host", "::1"), "HOST:PORT"),
        ((NOBODY, "--callback-host", "here:" + "9" * 5000), "HOST:PORT"),
        ((NOBODY, "--level", "some"), "'some'"),
    ],
)
def test_a_wrong_option_is_named(arguments: tuple[str, ...], said: str) -> None:
    """In one line, with exit code 2, before anything is sent."""
    result = _check(*arguments)
    assert (result.exit_code, said in result.output) == (2, True), result.output


def test_where_nobody_is_nothing_is_played() -> None:
    """Exit code 3, and the reason."""
    result = _check(NOBODY)
    assert result.exit_code == 3
    assert "could not be played: http://127.0.0.1:1: the connection was refused" in result.output


@pytest.mark.parametrize("behave", [hang, drip, pour, more_and_more_interim])
def test_a_server_that_never_answers_is_given_up(behave: Callable[[socket.socket, threading.Event], None]) -> None:
    """After some exchanges, and not after each point has waited."""
    with rude(behave) as url:
        began_s = time.monotonic()
        result = _check(url, "--timeout", "0.5")
    assert result.exit_code in (1, 3)
    assert "BROKEN  accepted: " in result.output or "could not be played" in result.output
    assert time.monotonic() - began_s < MUCH_MORE_S


ANSWERED = {
    **SAID,
    "200 to everything": b"HTTP/1.1 200 OK\r\n\r\n",
    "a redirect": b"HTTP/1.1 302 Go\r\nLocation: /elsewhere\r\n\r\n",
    "half a list": b"HTTP/1.1 202 Accepted\r\n\r\n[[[",
    "half an address": b'HTTP/1.1 202 Accepted\r\nLocation: //[\r\n\r\n{"job_id": "a", "status": "queued"}',
    "objects for words": b'HTTP/1.1 202 Accepted\r\nLocation: /jobs/a\r\n\r\n{"job_id": {"a": 1}, "status": ["a"]}',
    "half a pair": b'HTTP/1.1 202 Accepted\r\nLocation: /jobs/a\r\n\r\n{"job_id": "\\ud800", "status": "succeeded"}',
    "deep nesting": b"HTTP/1.1 202 Accepted\r\nLocation: /jobs/a\r\n\r\n" + b"[" * 100_000,
    "another encoding": b"HTTP/1.1 202 Accepted\r\nContent-Encoding: gzip\r\nLocation: \xff\xfe\r\n\r\n\x1f\x8b",
    "a huge number": b'HTTP/1.1 202 Accepted\r\n\r\n{"job_id": "a", "status": "queued", "n": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("said", ANSWERED.values(), ids=ANSWERED)
def test_no_answer_brings_the_checker_down(said: bytes) -> None:
    """It says that something is broken, or that it could not be played."""
    with rude(saying(said)) as url:
        result = _check(url, "--timeout", "2", "--job-timeout", "2", "--slow-body", "{}", "--failing-body", "{}")
    assert result.exit_code in (1, 3)
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output


def test_the_report_as_json_has_what_the_text_has() -> None:
    """One document, with each point, its source, and the lines of its exchanges."""
    with serving("Retry-After at the end") as url:
        result = _check(url, "--json", "--level", "basic", AJ_API_KEY=API_KEY)
    report = json.loads(result.output)
    assert result.exit_code == 1
    assert report["counts"]["broken"] == 1
    broken = [each for each in report["points"] if each["state"] == "broken"]
    assert broken[0]["name"] == "no-retry-after-at-the-end"
    assert broken[0]["source"] == "docs/contract.md §3"
    assert "< Retry-After: 1" in broken[0]["exchanges"][0]["lines"]


def test_the_report_holds_no_key_and_no_colour_where_nobody_looks() -> None:
    """The key is in each request, and in none that is shown."""
    with serving() as url:
        result = _check(url, "--level", "basic", AJ_API_KEY=API_KEY)
    assert result.exit_code == 0
    assert API_KEY not in result.output
    assert "> Authorization: ***" in result.output
    assert "\x1b" not in result.output


def _missing_key(url: str, *arguments: str, **env: str) -> tuple[str, str]:
    """What is found of that point, and why."""
    points = json.loads(_check(url, "--json", "--job-timeout", "2", *arguments, **env).output)["points"]
    return next((each["state"], each["why"]) for each in points if each["name"] == "missing-key")


def test_a_key_that_is_left_over_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API without keys takes any; only who says by an option that it has to ask is told that it does not."""
    monkeypatch.setattr(command, "ALL", [each for each in ALL if each.name == "missing-key"])
    with serving("no key needed") as url:
        left_over = _missing_key(url, AJ_API_KEY="another's")
        wanted = _missing_key(url, "--api-key", "mine")
    assert (left_over[0], "the API asks for no key" in left_over[1]) == ("skipped", True)
    assert wanted == ("broken", "no API key: 202 Accepted instead of 401")


def test_an_api_key_goes_nowhere_else() -> None:
    """A Location that leads to another origin is not followed."""
    with serving("Location elsewhere") as url:
        result = _check(url, "--level", "basic", "--brief", AJ_API_KEY=API_KEY)
    assert "Location leads to another origin, which is not followed" in result.output


def test_a_level_has_those_before_it_in_it() -> None:
    """And none behind it."""
    with serving() as url:
        result = _check(url, "--json", "--level", "safe-retry", AJ_API_KEY=API_KEY)
    assert {each["level"] for each in json.loads(result.output)["points"]} == {"basic", "safe-retry"}


def test_a_slow_job_that_is_refused_takes_no_other_point_with_it() -> None:
    """What needs it is skipped, with the option that is wrong; the rest is played."""
    with serving() as url:
        arguments = ("--json", "--level", "basic", "--slow-body", '{"task": "no such task"}')
        result = _check(url, *arguments, AJ_API_KEY=API_KEY)
    states = {each["name"]: (each["state"], each["why"]) for each in json.loads(result.output)["points"]}
    assert states["only-forward"] == ("held", None)
    assert {state for state, _ in states.values()} == {"held", "skipped"}


def test_the_command_line_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    """`aj check` is this command, exit code included."""
    assert main(["check", NOBODY]) == 3
    assert "could not be played" in capsys.readouterr().out


def test_names_and_sentences_tell_points_apart() -> None:
    """No two points have one name; each has a sentence and a source that can be looked up."""
    assert len({each.name for each in ALL}) == len(ALL)
    for each in ALL:
        assert each.sentence.endswith(".")
        assert "RFC " in each.source or "docs/contract.md §" in each.source


def test_a_profile_that_leaves_out_what_is_not_there_is_refused(tmp_path: Path) -> None:
    """A name that is misspelt would hide nothing, and nobody would know."""
    file = tmp_path / "mine.toml"
    text = Path("aj/check/profiles/aj.toml").read_text("utf-8")
    file.write_text(text + '\n[not_offered]\nwebhoks = "none"\n', "utf-8")
    result = _check(NOBODY, "--profile", str(file))
    assert (result.exit_code, "not_offered has webhoks" in result.output) == (2, True), result.output


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_no_api_key_is_shown_where_the_check_cannot_be_played(as_json: tuple[str, ...]) -> None:
    """A server that says it again instead of an answer does not bring it into the report."""
    with rude(saying(b"GARBAGE Bearer hush-hush\r\n\r\n")) as url:
        result = _check(url, *as_json, AJ_API_KEY="hush-hush")
    assert result.exit_code == 3
    assert "GARBAGE" in result.output
    assert "hush" not in result.output
