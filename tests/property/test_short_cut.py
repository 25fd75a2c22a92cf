"""The short cut past Flask answers as Flask does: status, each header field in its order, each byte, and the figures.

The store is left out: what it says is drawn, and a failure of it too.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import pytest
from flask import Flask
from hypothesis import event, example, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from aj import create_app
from aj.answers import EXTENSION
from aj.errors import StoreUnavailable
from aj.job import Callback, CallbackState, Job, Outcome, Status
from aj.pace import Outlook
from aj.rate import Quota, Rate
from aj.settings import Settings
from aj.short_cut import ShortCut
from aj.store import Answer, Found, Verdict
from tests.property.hostile import header_text, hostile_bytes, hostile_text

AT_MS, JOB_ID = 1_800_000_000_000, "01a3185c-5000-72ab-9700-e4b8dd66fd1f"
QUEUED = Job(id=JOB_ID, status=Status.QUEUED, task="square", created_ms=AT_MS, metadata=b'{"a": "\xc3\xa9"}')
RUNNING = replace(QUEUED, status=Status.RUNNING, started_ms=AT_MS + 5, attempt=1, progress=b'{"fraction": 0.5}')
SUCCEEDED = RUNNING.ended(Outcome(Status.SUCCEEDED, b"25"), AT_MS + 9, 60)
FAILED = replace(RUNNING.ended(Outcome.lost(), AT_MS + 9, 60), callback=Callback(CallbackState.PENDING))
OUTLOOK = Outlook(age_s=1.0, ahead=2, workers=1)
TAGS = tuple(f'"{job.etag()}"' for job in (QUEUED, SUCCEEDED))

Said = Found | Answer | Exception
FOUND: tuple[Said, ...] = (
    *(Found(QUEUED, 1.0, OUTLOOK), Found(RUNNING, 1.0), Found(SUCCEEDED), Found(FAILED), Found(expired_ms=AT_MS)),
    *(Found(deleted_ms=AT_MS), Found(), Found(replace(SUCCEEDED, owner="ann")), Found(owner="bob")),
    *(StoreUnavailable("It is away."), RuntimeError("unforeseen"), UnicodeError("unforeseen too")),
)
QUOTA = Quota(Rate(3, 60), 2, 20)
VERDICTS: tuple[Said, ...] = (
    *(Answer(Verdict.CREATED, JOB_ID), Answer(Verdict.CREATED, JOB_ID, QUOTA, OUTLOOK)),
    *(Answer(verdict, JOB_ID, QUOTA) for verdict in (Verdict.REPLAYED, Verdict.MISMATCH, Verdict.LIMITED)),
    *(Answer(Verdict.FULL, ""), StoreUnavailable("It is away."), RuntimeError("unforeseen")),
)


@dataclass
class Play:
    """Stands for the store and the figures: says what it is told to, and keeps why a submission was refused."""

    says: Said = field(default_factory=Found)
    refused: list[str] = field(default_factory=list)

    def say(self, *_: object) -> Any:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def submit(self, *_: object) -> Any:
        return self.say()

    def until(self, *_: object) -> Any:
        return Found(SUCCEEDED)

    def count_refused(self, why: str) -> None:
        self.refused.append(why)


@dataclass
class Stage:
    """An app whose short cut is open, and who plays its store."""

    app: Flask
    play: Play

    def both(self, environ: dict[str, Any], body: bytes) -> list[Any]:
        """What either way gives for the same request."""
        short_cut: Any = self.app.wsgi_app
        return [self._ask(way, environ, body) for way in (short_cut, short_cut.through_flask)]

    def _ask(self, way: Callable[..., Any], environ: dict[str, Any], body: bytes) -> Any:
        told: list[Any] = []
        chunks = way({**environ, "wsgi.input": io.BytesIO(body)}, lambda *head: told.append(head))
        whole, counted, self.play.refused = b"".join(chunks), self.play.refused, []
        return told, whole, counted


def stage(**more: str) -> Stage:
    env = {"AJ_REDIS_URL": "redis://127.0.0.1:1/0", "AJ_TASKS": "tests.support.tasks", **more}
    app, play = create_app(Settings.from_env(env)), Play()
    made = app.extensions[EXTENSION]["aj"]
    playing: Any = {"find": play.say, "waiting": play, "figures": play, "submit": replace(made.submit, jobs=play)}
    app.extensions[EXTENSION]["aj"] = replace(made, **playing)
    app.test_client().get("/healthz")
    assert isinstance(app.wsgi_app, ShortCut)
    return Stage(app, play)


KEY = "aj_" + "k" * 43
HASH = sha256(KEY.encode()).hexdigest()
STAGES = [stage(), stage(AJ_API_KEYS=f"ann:{HASH}")]


def environ_of(method: str, path: str, headers: dict[str, str], **more: str) -> dict[str, Any]:
    """As gunicorn makes it."""
    fields = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if f"HTTP_{name}" in fields:
            fields[name] = fields.pop(f"HTTP_{name}")
    usual = {
        "HTTP_HOST": "127.0.0.1:8140",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8140",
        "wsgi.errors": io.StringIO(),
    }
    return {
        **usual,
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http",
        **fields,
        **more,
    }


AUTHORIZATION = {"Authorization": st.sampled_from([f"Bearer {KEY}", f"bearer  {KEY}", "Bearer other", "Basic x"])}
CONDITIONS = header_text("W/", '"', "*", ", ", *TAGS)
METHODS = st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "DELETE", "get"])
PATHS = st.sampled_from([f"/jobs/{JOB_ID}"] * 4 + [f"/jobs/{JOB_ID}/result", f"/jobs/{JOB_ID}/", "/jobs", "//jobs"])
SERVED = st.fixed_dictionaries(
    {},
    optional={
        "HTTP_HOST": hostile_text("a", ".", "a.test", ":80", "xn--", "[::1]").map(lambda text: text[:200])
        | st.sampled_from(["", "a" * 64 + ".test", "a..test", "_dmarc.test", "ä.test"]),
        "SCRIPT_NAME": st.sampled_from(["/api", "/api/", "/a b/%20/\xc3\xbc", "api", "//"]),
        "QUERY_STRING": st.sampled_from(["a=b", "%zz&;=", "n=5"]),
        "HTTP_CONNECTION": st.just("upgrade"),
        "HTTP_UPGRADE": st.sampled_from(["websocket", "h2c"]),
        "wsgi.url_scheme": st.just("https"),
    },
)


def same(environ: dict[str, Any], body: bytes, says: Said) -> None:
    for each in STAGES:
        each.play.says = says
        short, long = each.both(environ, body)
        assert short == long
    event(short[0][0][0])


@profile(max_examples=400)
@given(
    method=METHODS,
    path=PATHS | hostile_text(f"/jobs/{JOB_ID}", "/jobs", "/", JOB_ID),
    headers=st.fixed_dictionaries(
        {},
        optional={
            "If-Match": CONDITIONS,
            "If-None-Match": CONDITIONS,
            "Prefer": header_text("wait", "=", "5", ","),
            **AUTHORIZATION,
        },
    ),
    served=SERVED,
    says=st.sampled_from(FOUND),
)
@example("GET", f"/jobs/{JOB_ID}", {"Prefer": "wait=5"}, {}, FOUND[0])
@example("GET", f"/jobs/{JOB_ID}", {}, {"HTTP_HOST": "a" * 64 + ".test"}, FOUND[0])
@example("GET", f"/jobs/{JOB_ID}", {}, {"HTTP_CONNECTION": "upgrade", "HTTP_UPGRADE": "websocket"}, FOUND[0])
@example("HEAD", f"/jobs/{JOB_ID}", {"If-None-Match": TAGS[1]}, {}, FOUND[2])
@example("GET", f"/jobs/{JOB_ID}", {"If-Match": '"other"'}, {}, FOUND[2])
def test_a_look_at_a_job(method: str, path: str, headers: dict[str, str], served: dict[str, str], says: Said) -> None:
    """Whatever the job has come to, whatever the conditions, wherever the app is mounted."""
    wire = path.encode("utf-8", "replace").decode("latin-1")
    same(environ_of(method, wire, headers, **served), b"", says)


JSON_PIECES = (b'{"n": 5}', b'{"n": 5}', b'{"n": "5"}', b"{", b"}", b'"task": ', b'"callback_url": "http://127.0.0.1/"')


@profile(max_examples=400)
@given(
    path=st.sampled_from(["/jobs"] * 6 + ["/jobs/", "/jobs/x", "/JOBS"]),
    body=st.just(b'{"n": 5}') | hostile_bytes(*JSON_PIECES),
    headers=st.fixed_dictionaries(
        {},
        optional={
            "Content-Type": st.sampled_from(
                ["application/json", "application/json; charset=utf-16", "", " ", "text/plain"]
            )
            | header_text("application/", "json"),
            "Content-Encoding": st.sampled_from(["identity", "gzip", ""]),
            "Content-Length": st.sampled_from(["3", "999999999", "x", ""]),
            "Idempotency-Key": header_text('"', "abc"),
            "Prefer": st.sampled_from(["wait=0", "wait=5", "wait=x", "respond-async, wait=5"]),
            "Traceparent": header_text("00-", "4bf92f3577b34da6a3ce929d0e0e4736", "-00f067aa0ba902b7", "-01"),
            "Expect": st.just("100-continue"),
            **AUTHORIZATION,
        },
    ),
    served=SERVED,
    says=st.sampled_from(VERDICTS),
)
@example("/jobs", b'{"n": 5}', {"Prefer": "wait=5"}, {}, VERDICTS[1])
@example("/jobs", b'{"n": "5"}', {"Authorization": f"Bearer {KEY}"}, {}, VERDICTS[0])
def test_a_submission(path: str, body: bytes, headers: dict[str, str], served: dict[str, str], says: Said) -> None:
    """Accepted or refused, by us or by the store, and counted alike where it brings no job."""
    length = {"Content-Length": str(len(body)), **headers}
    same(environ_of("POST", path, length, **served), body, says)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/jobs"), ("GET", f"/jobs/{JOB_ID}"), ("HEAD", f"/jobs/{JOB_ID}")]
)
def test_a_plain_request_takes_the_short_cut(method: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare Flask with itself."""
    [each, _] = STAGES
    each.play.says = VERDICTS[0] if method == "POST" else FOUND[0]
    monkeypatch.setattr(each.app.wsgi_app, "through_flask", lambda *_: pytest.fail("it went through Flask"))
    answer = each.app.test_client().open(path, method=method, json={"n": 5} if method == "POST" else None)
    assert answer.status_code == (202 if method == "POST" else 200)
