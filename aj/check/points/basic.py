"""Level basic: a submission is accepted, leads to its job, and the job tells honestly how it stands."""

from __future__ import annotations

import re
import uuid
from urllib.parse import unquote

from aj.check.exchange import Exchange
from aj.check.point import Level, Played, point
from aj.check.profile import WORDS, as_word, at, has
from aj.check.scene import Scene, pause
from aj.check.story import Story
from aj.check.verdicts import Skip, expect, expect_status

_ORDER = {"queued": 0, "running": 1, "succeeded": 2, "failed": 2}
_PAUSES_AFTER_END_S = (0.05, 0.1, 0.2, 0.4, 0.8)  # some change at once, some when a cache has forgotten
_DELAY = re.compile("[1-9][0-9]{0,8}")


@point(Level.BASIC, "RFC 9110 §15.3.3, docs/contract.md §2")
def accepted(scene: Scene) -> Played:
    """A submission is accepted at once, without a redirect."""
    exchange = scene.first_submission
    expect_status(exchange, *scene.profile.submit.accepted, may_be_busy=False)
    return exchange


@point(Level.BASIC, "RFC 9110 §15.3.3, docs/contract.md §2")
def accepted_body(scene: Scene) -> Played:
    """The answer to a submission is JSON that says which job it made."""
    submit, exchange = scene.profile.submit, scene.quick.job.submission
    document = exchange.document
    expect(isinstance(document, dict), "the body is not a JSON object", exchange)
    if submit.id:
        job_id = at(document, submit.id)
        expect(isinstance(job_id, str) and job_id, f"{submit.id} is not there, or no text", exchange)
    if submit.status:
        word = as_word(at(document, submit.status))
        expect(word in scene.profile.words["queued"], f"{submit.status} is {word} at the start", exchange)
    if submit.members:
        expect(set(document) == set(submit.members), f"it has not exactly {', '.join(submit.members)}", exchange)
    return exchange


@point(Level.BASIC, "RFC 9110 §10.2.2, docs/contract.md §2", "location")
def location(scene: Scene) -> Played:
    """The answer to a submission says where to look."""
    exchange, name = scene.quick.job.submission, scene.profile.submit.location
    where = scene.location(exchange)
    expect(where, f"there is no {name}", exchange)
    expect(scene.is_ours(where), f"{name} leads to another origin, which is not followed", exchange)
    expect(scene.quick.job.id in unquote(where), f"{name} does not name the job", exchange)
    return exchange


@point(Level.BASIC, "docs/contract.md §2")
def readable_at_once(scene: Scene) -> Played:
    """The very next look at the job finds it."""
    story = scene.quick
    expect(story.looks[0].status == 200, f"it was answered {story.looks[0].told()}", story.looks[0])
    return story.job.submission, story.looks[0]


@point(Level.BASIC, "docs/contract.md §2")
def fresh_ids(scene: Scene) -> Played:
    """Each submission makes a job of its own."""
    first, second = scene.quick.job, scene.submit()
    expect(first.id != second.id, "two submissions were given one id", first.submission, second.submission)
    return first.submission, second.submission


@point(Level.BASIC, "docs/contract.md §3")
def ends(scene: Scene) -> Played:
    """A job comes to an end, and every look at it until then is answered 200."""
    for story in scene.stories():
        if story.trouble.startswith("its status is"):
            raise Skip("see status-words")
        expect(not story.trouble, story.trouble, *story.looks[-1:])
        for look in story.looks[1:]:
            expect(look.status == 200, f"a look at it was answered {look.told()}", look)
    return scene.quick.looks[-1]


@point(Level.BASIC, "RFC 9110 §8.3, docs/contract.md §3")
def json_document(scene: Scene) -> Played:
    """A job is a JSON object, and its media type says so."""
    first = _first_good(scene.quick)
    for look in _good(scene):
        kind = look.answer.media_type if look.answer else ""
        expect(kind == "application/json" or kind.endswith("+json"), f"the Content-Type is {kind or 'missing'}", look)
        expect(isinstance(look.document, dict), "the body is not a JSON object", look)
    return first


@point(Level.BASIC, "docs/contract.md §3", "id")
def id_in_document(scene: Scene) -> Played:
    """The job's document names the job that was submitted."""
    first, name = _first_good(scene.quick), scene.profile.job.id
    for story in scene.stories():
        for look in (each for each in story.looks if each.status == 200):
            said = at(look.document, name)
            expect(said == story.job.id, f"{name} is {said!r} instead of {story.job.id!r}", look)
    return first


@point(Level.BASIC, "docs/contract.md §3")
def status_words(scene: Scene) -> Played:
    """The status is always one of the known words."""
    for look in _good(scene):
        word = as_word(at(look.document, scene.profile.job.status))
        known = [each for ours in WORDS for each in scene.profile.words[ours]]
        expect(scene.status(look), f"{scene.profile.job.status} is {word}, not one of {', '.join(known)}", look)
    return _first_good(scene.quick)


@point(Level.BASIC, "docs/contract.md §3")
def only_forward(scene: Scene) -> Played:
    """The status only moves forward."""
    for story in scene.stories():
        before: Exchange | None = None
        for look in story.looks:
            if before is not None and look.status == before.status == 200:
                was, now = scene.status(before) or "queued", scene.status(look) or "failed"
                expect(_ORDER[now] >= _ORDER[was], f"it went from {was} back to {now}", before, look)
            before = look
    return scene.quick.looks[-1]


@point(Level.BASIC, "docs/contract.md §3")
def end_is_final(scene: Scene) -> Played:
    """A job that has ended says the same for ever after."""
    end = scene.quick.end
    ended = [story for story in scene.stories() if not story.trouble]
    for pause_s in _PAUSES_AFTER_END_S:
        pause(pause_s)
        for story in ended:
            again = scene.look(story.job)
            expect(again.status == 200, "it has ended, and is no longer there", story.end, again)
            changed = _changed(scene, story.end, again)
            expect(not changed, f"it has ended, and then changed: {changed}", story.end, again)
    return end, scene.look(scene.quick.job)


def _changed(scene: Scene, end: Exchange, again: Exchange) -> str:
    """What of a document that is final has changed, or nothing.

    What the profile names may not. Of the rest, such as how its webhook stands, nobody can know, but where a strong
    ETag says that all is the same. Source: RFC 9110 section 8.8.1.
    """
    job, submit = scene.profile.job, scene.profile.submit
    for name in filter(None, (job.status, job.result, job.error, job.id, submit.metadata, *job.times)):
        was, now = at(end.document, name), at(again.document, name)
        if was != now or has(end.document, name) != has(again.document, name):
            return f"{name} was {was!r} and is {now!r}"
    tag = end.field("ETag") or ""
    if tag.startswith('"') and tag == again.field("ETag") and end.document != again.document:
        return "its document, under the same strong ETag"
    return ""


@point(Level.BASIC, "docs/contract.md §3", "result")
def result_only_at_the_end(scene: Scene) -> Played:
    """The result is there exactly when the job has succeeded."""
    end = scene.quick.end
    expect(scene.status(end) == "succeeded", "the job of the default body failed", end)
    if not scene.profile.job.result:
        return _served_result(scene)
    name = scene.profile.job.result
    for look in _good(scene):
        if scene.is_active(look):
            expect(not has(look.document, name), f"there is a {name} before the end", look)
        if scene.status(look) == "failed":
            expect(not has(look.document, name), f"there is a {name} although the job failed", look)
        if scene.status(look) == "succeeded":
            expect(has(look.document, name), f"the job has succeeded, and there is no {name}", look)
    return end


def _served_result(scene: Scene) -> Played:
    """The same where the result is a resource of its own."""
    path = scene.profile.job.result_path
    served = _result_of(scene, scene.quick)
    for story in scene.stories()[1:]:
        if not story.trouble and scene.status(story.end) == "succeeded":
            _result_of(scene, story)
    if scene.options.slow is not None:
        slow = scene.submit_slow()
        early = scene.play("GET", scene.path(path, slow.id))
        if early.status < 400:
            scene.expect_slow(slow)
        expect(early.status >= 400, f"there is a result before the end: {early.told()}", early)
    if scene.options.failing is not None:
        failed = scene.play("GET", scene.path(path, scene.failing.job.id))
        expect(failed.status >= 400, f"there is a result although the job failed: {failed.told()}", failed)
    return served


def _result_of(scene: Scene, story: Story) -> Exchange:
    served = scene.play("GET", scene.path(scene.profile.job.result_path, story.job.id))
    why = f"the job has succeeded, and its result is answered {served.told()}"
    expect(served.status == 200, why, story.end, served)
    return served


@point(Level.BASIC, "docs/contract.md §3", "error")
def error_when_failed(scene: Scene) -> Played:
    """A job that failed says why, and only such a job does."""
    name = scene.profile.job.error
    for look in _good(
        scene
    ):  # also where no job fails: a null that is always there would mislead who asks for presence
        if scene.status(look) != "failed":
            expect(not has(look.document, name), f"there is the member {name} although the job has not failed", look)
    end = scene.failing.end
    expect(scene.status(end) == "failed", "the job of --failing-body succeeded", end)
    expect(has(end.document, name), f"the job has failed, and there is no {name}", end)
    return end


@point(Level.BASIC, "RFC 9110 §10.2.3, docs/contract.md §2", "retry-after")
def retry_after_on_accepted(scene: Scene) -> Played:
    """The answer to a submission says in whole seconds when to look."""
    return _has_delay(scene.quick.job.submission)


@point(Level.BASIC, "RFC 9110 §10.2.3, docs/contract.md §3", "retry-after")
def retry_after_while_active(scene: Scene) -> Played:
    """Each look at a job that has not ended says in whole seconds, at least 1, when to look again."""
    shown = scene.active_look()
    for look in _good(scene):
        if scene.is_active(look):
            _has_delay(look)
    return shown


@point(Level.BASIC, "docs/contract.md §3", "retry-after")
def no_retry_after_at_the_end(scene: Scene) -> Played:
    """A job that has ended gives no reason to look again: its answer has no Retry-After."""
    end = scene.quick.end
    for story in scene.stories():
        final = story.looks[-1]
        if final.status == 200 and scene.is_final(final):
            expect(final.field("Retry-After") is None, "a job that has ended is answered with Retry-After", final)
    return end


@point(Level.BASIC, "RFC 9110 §15.5.5, docs/contract.md §3")
def unknown_id(scene: Scene) -> Played:
    """An id that was never given is 404."""
    shape = scene.quick.job.id
    try:
        stranger = str(uuid.UUID(int=uuid.UUID(shape).int ^ uuid.uuid4().int >> 64))
    except ValueError:
        stranger = str(uuid.uuid4())
    exchange = scene.play("GET", scene.path(scene.profile.job.path, stranger))
    expect(exchange.status == 404, f"an id that was never given is answered {exchange.told()}", exchange)
    return exchange


@point(Level.BASIC, "RFC 9110 §15.5.5, docs/contract.md §3")
def malformed_id(scene: Scene) -> Played:
    """Whatever stands where an id should is 404, and never a server error."""
    for name in ("no-such-job", "x" * 300, "%00", "%FF", "%F0%9F%90%9D", "0", "..%2f..%2fetc"):
        exchange = scene.play("GET", scene.profile.job.path.replace("{id}", name))
        expect(exchange.status in (400, 404), f"the id {name[:20]} is answered {exchange.told()}", exchange)
        expect(exchange.status == 404, f"the id {name[:20]} is answered {exchange.told()} instead of 404", exchange)
    return exchange


def _has_delay(exchange: Exchange) -> Exchange:
    value = exchange.field("Retry-After")
    expect(value is not None, "there is no Retry-After", exchange)
    expect(_DELAY.fullmatch(value or ""), f"Retry-After is {value!r}, not a whole number of at least 1", exchange)
    return exchange


def _first_good(story: Story) -> Exchange:
    """The first look that was answered 200. Raises: Skip: there is none."""
    look = next((look for look in story.looks if look.status == 200), None)
    if look is None:
        raise Skip("the job was not found; see readable-at-once")
    return look


def _good(scene: Scene) -> list[Exchange]:
    """All looks that were answered 200, over all jobs that were followed."""
    return [look for story in scene.stories() for look in story.looks if look.status == 200]
