"""Level safe-retry: a submission may be sent again, by whomever, without a second job."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aj.check.exchange import Exchange
from aj.check.options import Call
from aj.check.point import Level, Played, point
from aj.check.profile import at
from aj.check.scene import Scene
from aj.check.verdicts import Broken, Skip, expect, expect_status

RACERS = 12
LISTED_RACES = 3
_DRAFT = "draft-ietf-httpapi-idempotency-key-header-07"
_SECOND = "a second submission with the same key"
_MALFORMED = ("", '""', '"open', 'half"', '"a";b=1', "a b", "a, b", "ключ", "x" * 256, f'"{"x" * 256}"')


@point(Level.SAFE_RETRY, f"{_DRAFT} §2.6, docs/contract.md §2", "idempotency")
def replay_is_first_answer(scene: Scene) -> Played:
    """The same key with the same payload brings the first answer again, byte for byte."""
    key = _key(scene)
    first = scene.submit(None, key).submission
    again = scene.send(scene.body(), key)
    _expect_same(scene, first, again)
    return first, again


@point(Level.SAFE_RETRY, "docs/contract.md §2", "idempotency replayed")
def replay_is_marked(scene: Scene) -> Played:
    """A replay says that it is one, and a first answer does not."""
    key, name = _key(scene), scene.profile.headers.replayed
    first = scene.submit(None, key).submission
    again = scene.send(scene.body(), key)
    expect(first.field(name) is None, f"the first answer has {name}", first)
    expect((again.field(name) or "").lower() == "true", f"a replay has no {name}: true", first, again)
    return first, again


@point(Level.SAFE_RETRY, f"{_DRAFT} §2.2, docs/contract.md §2", "idempotency")
def keys_tell_jobs_apart(scene: Scene) -> Played:
    """Another key is another job, also with the same payload."""
    first, second = scene.submit(None, _key(scene)), scene.submit(None, _key(scene))
    expect(first.id != second.id, "two keys were given one job", first.submission, second.submission)
    return first.submission, second.submission


@point(Level.SAFE_RETRY, "docs/contract.md §2", "idempotency")
def payload_is_the_value(scene: Scene) -> Played:
    """Order of members and white space make no other payload."""
    key = _key(scene)
    first = scene.submit(None, key)
    value = scene.options.call.body
    turned = dict(reversed(value.items())) if isinstance(value, dict) else value
    again = scene.send(f"\n{json.dumps(turned, indent=3)} ".encode(), key)
    expect(_id(scene, again) == first.id, f"{_SECOND} and value: {again.told()}", first.submission, again)
    return first.submission, again


@point(Level.SAFE_RETRY, "RFC 9651 §3.3.3, docs/contract.md §2", "idempotency")
def quoted_or_bare(scene: Scene) -> Played:
    """A key in quotation marks and the same text bare are one key."""
    name, text = scene.profile.headers.idempotency, str(uuid.uuid4())
    first = scene.submit(None, ((name, f'"{text}"'),))
    again = scene.send(scene.body(), ((name, text),))
    expect(_id(scene, again) == first.id, f"the bare key: {again.told()}, another job", first.submission, again)
    return first.submission, again


@point(Level.SAFE_RETRY, f"{_DRAFT} §2.6, docs/contract.md §2", "idempotency")
def racing_submissions(scene: Scene) -> Played:
    """However many submissions race with one key: all are accepted, all name one job."""
    key = _key(scene)
    scene.submit()  # whatever stands in the way of a submission shows here
    answers = _race(scene, key)
    ids = {_id(scene, each) for each in answers}
    strange = next((each for each in answers if not scene.is_accepted(each)), None)
    expect(
        strange is None, f"one of {RACERS} that raced was answered {strange.told() if strange else ''}", *_two(strange)
    )
    other = next((each for each in answers if _id(scene, each) != _id(scene, answers[0])), None)
    expect(len(ids) == 1, f"{RACERS} that raced with one key were given {len(ids)} jobs", answers[0], *_two(other))
    for each in answers:
        _expect_same(scene, answers[0], each)
    return answers[0], answers[-1]


@point(Level.SAFE_RETRY, "docs/contract.md §2", "idempotency list")
def one_job_in_the_list(scene: Scene) -> Played:
    """After a race the list of jobs has one job more."""
    for _ in range(LISTED_RACES):  # what others submit meanwhile is in the list too, but not each time
        before = scene.submit()
        answers = _race(scene, _key(scene))
        after = scene.submit()
        listed = scene.play("GET", scene.profile.paths.list)
        ids = [at(each, scene.profile.job.id) for each in at(listed.document, scene.profile.paths.list_member) or []]
        if before.id not in ids or after.id not in ids:
            raise Skip("the list does not show what was submitted just now; see list-newest-first")
        first, last = sorted((ids.index(before.id), ids.index(after.id)))
        between = ids[first + 1 : last]
        if len(between) == 1 and between[0] in [_id(scene, each) for each in answers]:
            return answers[0], listed
    raise Broken(f"a race with one key left {len(between)} jobs in the list", answers[0], listed)


@point(Level.SAFE_RETRY, f"{_DRAFT} §2.7, docs/contract.md §2", "idempotency")
def key_reused(scene: Scene) -> Played:
    """The same key with another payload is 422."""
    other = _other_body(scene)
    key = _key(scene)
    scene.submit(None, key)
    reused = scene.send(other, key)
    expect_status(reused, 422, when="the key with another payload")
    return reused


@point(Level.SAFE_RETRY, "docs/contract.md §2", "idempotency")
def key_outlives_the_job(scene: Scene) -> Played:
    """After its job has ended a key still brings the first answer, and still fits no other payload."""
    key = _key(scene)
    job = scene.submit(None, key)
    _ = scene.follow(job).end
    again = scene.send(scene.body(), key)
    _expect_same(scene, job.submission, again)
    expect_status(scene.send(_other_body(scene), key), 422, when="the key with another payload")
    return job.submission, again


@point(Level.SAFE_RETRY, "docs/contract.md §2", "idempotency")
def refusal_spends_no_key(scene: Scene) -> Played:
    """A submission that was refused does not use its key up."""
    scene.submit()
    for wrong in (b"{", b"[]"):  # one that cannot be read, and one that can
        key = _key(scene)
        refused = scene.send(wrong, key)
        if refused.status < 400:
            raise Skip("a body that is no JSON object was not refused; see not-json and not-an-object")
        accepted = scene.send(scene.body(), key)
        expect_status(accepted, *scene.profile.submit.accepted, when=f"the key after {wrong.decode()} was refused")
    return refused, accepted


@point(Level.SAFE_RETRY, f"RFC 9651 §3.3.3, {_DRAFT} §2.1, docs/contract.md §2", "idempotency")
def malformed_key(scene: Scene) -> Played:
    """A key that is empty, too long, not ASCII or half quoted is 400, and makes no job."""
    name = scene.profile.headers.idempotency
    scene.submit()
    for text in _MALFORMED:
        exchange = scene.send(scene.body(), ((name, text or " "),))
        expect_status(exchange, 400, when=f"the key {text[:20]!r}")
    return exchange


@point(Level.SAFE_RETRY, "RFC 9110 §5.3, docs/contract.md §2", "idempotency")
def repeated_key(scene: Scene) -> Played:
    """Two keys in one request are 400."""
    scene.submit()
    exchange = scene.send(scene.body(), (*_key(scene), *_key(scene)))
    expect_status(exchange, 400, when="two keys")
    return exchange


def _key(scene: Scene) -> tuple[tuple[str, str]]:
    """A fresh key, in the form that the draft gives it."""
    return ((scene.profile.headers.idempotency, f'"{uuid.uuid4()}"'),)


def _id(scene: Scene, exchange: Exchange) -> str:
    """The job of an accepted submission, or nothing."""
    try:
        return scene.job_of(exchange).id
    except Skip:
        return ""


def _race(scene: Scene, key: tuple[tuple[str, str]]) -> list[Exchange]:
    """The answers to submissions that were sent at the same time. Raises: Broken: one had none."""
    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(lambda _: scene.send(scene.body(), key), range(RACERS)))


def _two(exchange: Exchange | None) -> tuple[Exchange, ...]:
    return () if exchange is None else (exchange,)


def _expect_same(scene: Scene, first: Exchange, again: Exchange) -> None:
    assert first.answer is not None
    assert again.answer is not None
    expect(again.status == first.status, f"{_SECOND} and payload: {again.told()}", first, again)
    expect(again.answer.body == first.answer.body, f"{_SECOND} and payload has another body", first, again)
    name = scene.profile.submit.location
    expect(
        not name or again.field(name) == first.field(name), f"{_SECOND} and payload has another {name}", first, again
    )


def _other_body(scene: Scene) -> bytes:
    """A payload that differs from the default one and is accepted. Raises: Skip: none is known."""
    call, calls = scene.options.call, [scene.options.slow, scene.options.failing]
    others = [varied(call.body), *(each.body for each in calls if each and each.path == call.path)]
    for other in others:
        if other is None or other == call.body:
            continue
        try:
            scene.submit(Call(call.path, other))
        except Skip:
            continue
        return json.dumps(other).encode()
    raise Skip("no other payload is known that is accepted; --slow-body says one")


def varied(value: Any) -> Any:
    """`value` with its first number or text changed, or None where it has neither."""
    if type(value) is int:
        return value + 1
    if isinstance(value, str):
        return value + "x"
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in pairs:
        other = varied(each)
        if other is not None:
            copy = value.copy()
            copy[name] = other
            return copy
    return None
