"""Level complete, how a job is read: conditional requests, HEAD and OPTIONS, caching, waiting."""

from __future__ import annotations

import json
import re

from aj.check.exchange import Exchange
from aj.check.point import Level, Played, point
from aj.check.profile import at, has
from aj.check.scene import Scene, pause
from aj.check.story import Job
from aj.check.verdicts import Skip, expect, expect_status

_ETAG = re.compile(r'(W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
MOST_WAIT_S = 8
LOOKS_FOR_RUNNING = 40


@point(Level.COMPLETE, "RFC 9110 §8.8.3, docs/contract.md §3", "etag")
def etag(scene: Scene) -> Played:
    """A job has an ETag, which is strong once the job has ended."""
    end = scene.quick.end
    value = end.field("ETag") or ""
    expect(_ETAG.fullmatch(value), f"the ETag is {value!r}" if value else "there is no ETag", end)
    expect(not value.startswith("W/"), "the ETag of a job that has ended is weak", end)
    return end


@point(Level.COMPLETE, "RFC 9110 §8.8.1, docs/contract.md §3", "etag")
def etag_moves(scene: Scene) -> Played:
    """The ETag of a job that has ended is another one than before."""
    active = scene.active_look()
    end = next(story for story in scene.stories() if active in story.looks).end
    before, after = active.field("ETag"), end.field("ETag") or ""
    expect(before, "there is no ETag before the end", active)
    same = (before or "").removeprefix("W/") == after.removeprefix("W/")  # a weak comparison is what a 304 depends on
    expect(not same, "the ETag is the same before and after the end", active, end)
    return active, end


@point(Level.COMPLETE, "RFC 9110 §13.1.2, §15.4.5, docs/contract.md §3", "etag")
def not_modified(scene: Scene) -> Played:
    """An If-None-Match that matches is 304 with the same ETag and no body."""
    tag = _tag(scene)
    for value in (tag, f'"other", W/{tag.removeprefix("W/")}', "*"):
        exchange = scene.look(scene.quick.job, (("If-None-Match", value),))
        expect_status(exchange, 304, when=f"If-None-Match: {value}")
        assert exchange.answer is not None
        expect(exchange.field("ETag") == tag, "the 304 has another ETag, or none", exchange)
        expect(not exchange.answer.rest_bytes, "the 304 has a body", exchange)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §10.2.3, docs/contract.md §3", "etag retry-after")
def not_modified_while_active(scene: Scene) -> Played:
    """A 304 of a job that has not ended says when to look again, as a 200 does."""
    job = scene.submit_slow()
    for _ in range(LOOKS_FOR_RUNNING):
        look = _running(scene, job)
        if not look.field("ETag"):
            raise Skip("there is no ETag; see etag")
        exchange = scene.look(job, (("If-None-Match", look.field("ETag") or ""),))
        if exchange.status == 304:
            expect(exchange.field("Retry-After"), "there is no Retry-After in the 304", look, exchange)
            return look, exchange
    raise Skip("the job changed too quickly")


@point(Level.COMPLETE, "RFC 9110 §13.1.2, docs/contract.md §3", "etag")
def other_tag(scene: Scene) -> Played:
    """An If-None-Match that does not match brings the document."""
    _tag(scene)
    exchange = scene.look(scene.quick.job, (("If-None-Match", '"another"'),))
    expect_status(exchange, 200, when="another ETag")
    return exchange


@point(Level.COMPLETE, "RFC 9111 §5.2.2, docs/contract.md §2, §3", "cache-control")
def cache_control(scene: Scene) -> Played:
    """No cache may keep the answer to a submission or a 404, and each look at a job is asked anew."""
    submission, end = scene.quick.job.submission, scene.quick.end
    missing = scene.play("GET", scene.profile.job.path.replace("{id}", "no-such-job"))
    judged = [(submission, "no-store"), (end, "no-cache"), *([(missing, "no-store")] if missing.status == 404 else [])]
    for exchange, wanted in judged:
        said = exchange.field("Cache-Control")
        named = [each.strip().lower() for each in (said or "").split(",")]
        expect(wanted in named, f"Cache-Control is {said}, not {wanted}", exchange)
    if missing.status != 404:
        raise Skip("an id that was never given is not 404; see malformed-id")
    return submission, end


@point(Level.COMPLETE, "RFC 9110 §9.3.2, docs/contract.md §3", "head")
def head(scene: Scene) -> Played:
    """HEAD is GET without the body."""
    end, exchange = scene.look(scene.quick.job), scene.play("HEAD", scene.quick.job.url)
    assert exchange.answer is not None
    expect(exchange.status == end.status, f"HEAD is {exchange.told()}, GET {end.told()}", end, exchange)
    expect(not exchange.answer.rest_bytes, "the answer to HEAD has a body", exchange)
    for name in ("Content-Type", "ETag", "Content-Length", "Cache-Control"):
        same = exchange.field(name) == end.field(name)
        if name == "Content-Length":  # which is not there where the body comes in chunks, or HEAD does not make one
            same = same or None in (exchange.field(name), end.field(name))
        expect(same, f"{name} is {exchange.field(name)} with HEAD and {end.field(name)} with GET", end, exchange)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §9.3.7, §10.2.1, docs/contract.md §3", "allow")
def options(scene: Scene) -> Played:
    """OPTIONS says which methods there are."""
    for url, method in ((scene.quick.job.url, "GET"), (scene.profile.submit.path, scene.profile.submit.method)):
        exchange = scene.play("OPTIONS", url)
        expect(200 <= exchange.status < 300, f"OPTIONS is {exchange.told()}", exchange)
        allowed = exchange.field("Allow")
        named = [each.strip().upper() for each in (allowed or "").split(",")]
        expect(method in named, f"Allow is {allowed}, without {method}", exchange)
    return exchange


@point(Level.COMPLETE, "RFC 3339 §5.6, docs/contract.md §3", "times")
def times(scene: Scene) -> Played:
    """Times are RFC 3339 in UTC with milliseconds, and follow upon each other."""
    for story in scene.stories():
        end = story.end
        first, *others = scene.profile.job.times  # a job that never began, or is kept for ever, has not all of them
        names = [first, *(name for name in others if has(end.document, name))]
        found = [str(at(end.document, name)) for name in names]
        for name, value in zip(names, found, strict=True):
            expect(_RFC3339.fullmatch(value), f"{name} is {value}", end)
        expect(found == sorted(found), "the times are not in order", end)
    return scene.quick.end


@point(Level.COMPLETE, "docs/contract.md §3", "error error-types")
def error_type(scene: Scene) -> Played:
    """The error of a job has a type that the contract knows, a title and a detail, and no traceback."""
    end, name = scene.failing.end, scene.profile.job.error
    types = scene.profile.job.error_types
    kind = at(end.document, f"{name}.type")
    expect(kind in types, f"{name}.type is {kind}", end)
    for member in ("title", "detail"):
        expect(isinstance(at(end.document, f"{name}.{member}"), str), f"{name}.{member} is not a text", end)
    expect("Traceback (most recent" not in json.dumps(end.document), "there is a traceback in it", end)
    return end


@point(Level.COMPLETE, "RFC 7240 §4.3, docs/contract.md §2", "wait")
def wait_on_submission(scene: Scene) -> Played:
    """A submission that prefers to wait is answered with the document of a job that ends in time."""
    seconds = _wait_s(scene)
    scene.submit()
    exchange = scene.send(scene.body(), (("Prefer", f"wait={seconds}"),))
    if scene.is_accepted(exchange) and exchange.status != 200 and exchange.took_s > seconds - 0.5:
        raise Skip(f"the job did not end within {seconds} s; --body says a quick one, and a worker has to run")
    expect_status(exchange, 200, when=f"Prefer: wait={seconds}")
    expect(scene.is_final(exchange), "the job of the answer has not ended", exchange)
    expect(scene.location(exchange), f"there is no {scene.profile.submit.location}", exchange)
    return _applied(exchange, seconds)


@point(Level.COMPLETE, "RFC 7240 §4.3, docs/contract.md §3", "wait")
def wait_on_job(scene: Scene) -> Played:
    """A look that prefers to wait is held until the job ends, or for so long."""
    seconds = _wait_s(scene)
    job = scene.submit_slow()
    exchange = scene.look(job, (("Prefer", f"wait={seconds}"),))
    expect_status(exchange, 200, when=f"Prefer: wait={seconds}")
    held = scene.is_final(exchange) or exchange.took_s > seconds - 0.5
    expect(held, f"it was answered after {exchange.took_s:.1f} s, before the end", exchange)
    return _applied(exchange, seconds)


@point(Level.COMPLETE, "RFC 7240 §4.3, RFC 9110 §13.1.2, docs/contract.md §3", "wait")
def wait_for_a_change(scene: Scene) -> Played:
    """A look that waits and has seen the last change is answered at the next one."""
    seconds, job = _wait_s(scene), scene.submit_slow()
    first = _running(scene, job)
    tag = first.field("ETag")
    if not tag:
        raise Skip("there is no ETag; see etag")
    exchange = scene.look(job, (("Prefer", f"wait={seconds}"), ("If-None-Match", tag)))
    now = exchange.field("ETag") or ""
    changed = exchange.status == 200 and now.removeprefix("W/") != tag.removeprefix("W/")
    nothing = exchange.status == 304 and exchange.took_s > seconds - 0.5
    expect(changed or nothing, f"{exchange.told()} after {exchange.took_s:.1f} s and no change", first, exchange)
    return first, exchange


@point(Level.COMPLETE, "RFC 7240 §2, docs/contract.md §2", "wait")
def malformed_wait(scene: Scene) -> Played:
    """A preference that cannot be understood is passed over."""
    job = scene.quick.job
    for value in ("wait=soon", "wait", "wait=-1", 'wait="', ";;,=", "wait=1e9"):
        exchange = scene.look(job, (("Prefer", value),))
        expect_status(exchange, 200, when=f"Prefer: {value}")
    return exchange


@point(Level.COMPLETE, "docs/contract.md §3", "wait")
def no_wait_in_vain(scene: Scene) -> Played:
    """Nobody waits for a job that is unknown or has ended."""
    seconds = _wait_s(scene)
    if seconds < 2:
        raise Skip("it takes a --timeout of at least 4 s")
    prefer = (("Prefer", f"wait={seconds}"),)
    _ = scene.quick.end
    unknown = scene.play("GET", scene.profile.job.path.replace("{id}", "no-such-job"), prefer)
    for exchange in (unknown, scene.look(scene.quick.job, prefer)):
        expect(exchange.took_s < seconds - 0.5, f"it was held for {exchange.took_s:.1f} s", exchange)
    return exchange


def _tag(scene: Scene) -> str:
    """The ETag of the first job at its end. Raises: Skip: it has none."""
    tag = scene.quick.end.field("ETag")
    if not tag:
        raise Skip("there is no ETag; see etag")
    return tag


def _wait_s(scene: Scene) -> int:
    """How long to ask to wait: well within the time of one exchange."""
    return max(1, min(MOST_WAIT_S, int(scene.options.timeout_s) - 2))


def _running(scene: Scene, job: Job) -> Exchange:
    """A look at a job that runs, so that its next change takes a while. Raises: Skip: none met it so."""
    for _ in range(LOOKS_FOR_RUNNING):
        look = scene.look(job)
        if look.status != 200 or scene.status(look) != "queued":
            break
        pause(0.05)
    if look.status != 200 or not scene.is_active(look):
        raise Skip("the job of --slow-body had ended before it could be looked at")
    return look


def _applied(exchange: Exchange, seconds: int) -> Exchange:
    said = exchange.field("Preference-Applied") or ""
    expect(said.replace('"', "").lower() == f"wait={seconds}", f"Preference-Applied is {said or 'missing'}", exchange)
    varies = [each.strip().lower() for each in (exchange.field("Vary") or "").split(",")]
    expect("prefer" in varies or "*" in varies, "Vary does not name Prefer", exchange)
    return exchange
