"""Level complete, webhooks: signed, sent until they are taken, and never ahead of the job that they tell of."""

from __future__ import annotations

import json

from aj.check.hooks import ANSWERS, ELSEWHERE, FAILING, REDIRECTED_ONCE, REFUSED_ONCE, TRACE, hooks
from aj.check.point import Level, Played, point
from aj.check.profile import at, has
from aj.check.receiver import Delivery
from aj.check.scene import Scene, pause
from aj.check.verdicts import Broken, Skip, expect, expect_status
from aj.clock import monotonic_s
from aj.errors import SignatureError
from aj.signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, TOLERANCE_S, verify

QUIET_S = 1.5
LOGGED_S = 5.0
RESULT_MOST_BYTES = 16 * 1024
_STANDARD = "Standard Webhooks 1.0"


@point(Level.COMPLETE, "docs/contract.md §5", "webhook")
def webhook_arrives(scene: Scene) -> Played:
    """When a job with a callback has ended, its address is called by POST with JSON."""
    delivery = hooks(scene).first(REFUSED_ONCE)
    shown = delivery.shown()
    expect(delivery.method == "POST", f"it is called by {delivery.method}", shown)
    kind = delivery.lowered().get("content-type", "")
    expect(
        kind.partition(";")[0].strip().lower() == "application/json", f"its Content-Type is {kind or 'missing'}", shown
    )
    return shown


@point(Level.COMPLETE, "docs/contract.md §5", "webhook")
def webhook_of_a_failure(scene: Scene) -> Played:
    """A job that failed is told of too."""
    watched = hooks(scene)
    watched.firsts()
    delivery = watched.first(FAILING)
    document = scene.value_of(delivery.body)
    expect(scene.profile.status_of(document) == "failed", "it does not say that the job failed", delivery.shown())
    return delivery.shown()


@point(Level.COMPLETE, "docs/contract.md §5", "webhook")
def webhook_says_what_the_job_says(scene: Scene) -> Played:
    """The webhook has the id, the status and the outcome of the job in it."""
    watched, job = hooks(scene), scene.profile.job
    for path, delivery in watched.firsts().items():
        value, look = scene.value_of(delivery.body), scene.follow(watched.jobs[path]).end
        for name in filter(None, (job.id, job.status, job.result, job.error)):
            same = at(value, name) == at(look.document, name)
            if name == job.result and not has(value, name):
                same = same or _may_omit(value, at(look.document, name))
            expect(same, f"{name} is {at(value, name)!r} in it", delivery.shown(), look)
    return delivery.shown()


@point(Level.COMPLETE, f"{_STANDARD} (payload structure), docs/contract.md §5", "webhook webhook-type")
def webhook_type(scene: Scene) -> Played:
    """The webhook has a type and a timestamp of its own."""
    for path, delivery in hooks(scene).firsts().items():
        value = scene.value_of(delivery.body)
        wanted = "job.failed" if path == FAILING else "job.succeeded"
        expect(at(value, "type") == wanted, f"its type is {at(value, 'type')!r}, not {wanted}", delivery.shown())
        expect(isinstance(at(value, "timestamp"), str), "there is no timestamp in it", delivery.shown())
    return delivery.shown()


@point(Level.COMPLETE, "docs/contract.md §5", "webhook")
def webhook_after_the_end(scene: Scene) -> Played:
    """Who fetches the job on receipt of its webhook sees that it has ended."""
    for delivery in hooks(scene).firsts().values():
        if delivery.look is None:
            raise Skip("the webhook does not say which job it is about, or a look at that was not answered")
        shown = (delivery.shown(), delivery.look)
        expect(scene.is_final(delivery.look), "the job that it tells of has not ended", *shown)
    return shown


@point(Level.COMPLETE, f"{_STANDARD} (webhook headers), docs/contract.md §5", "webhook signature")
def webhook_headers(scene: Scene) -> Played:
    """Each attempt has an id, and a timestamp of its own time."""
    for delivery in hooks(scene).firsts().values():
        fields = delivery.lowered()
        expect(fields.get(ID_HEADER), f"there is no {ID_HEADER}", delivery.shown())
        said = fields.get(TIMESTAMP_HEADER, "")
        expect(said.isdecimal(), f"{TIMESTAMP_HEADER} is {said or 'missing'}", delivery.shown())
        off_s = abs(int(said) - delivery.at_ms / 1000)
        expect(off_s <= TOLERANCE_S, f"{TIMESTAMP_HEADER} is {off_s:.0f} s off", delivery.shown())
    return delivery.shown()


@point(Level.COMPLETE, f"{_STANDARD} (deliverability), docs/contract.md §5", "webhook")
def webhook_again(scene: Scene) -> Played:
    """An attempt that was answered 500 is followed by another, with the same id and the same bytes."""
    watched = hooks(scene)
    watched.firsts()
    came = watched.wait(REFUSED_ONCE, 2)
    shown = [each.shown() for each in came[:2]]
    expect(len(came) > 1, f"no second attempt came within {watched.within_s:g} s", *shown)
    expect(_id(came[0]) == _id(came[1]), f"{ID_HEADER} is another one", *shown)
    expect(came[0].body == came[1].body, "the bytes of the body are others", *shown)
    return shown


@point(Level.COMPLETE, f"{_STANDARD} (signature scheme), docs/contract.md §5", "webhook signature")
def webhook_signature(scene: Scene) -> Played:
    """Each attempt is signed with the secret, over its id, its timestamp and the very bytes of its body."""
    if scene.options.secret is None:
        raise Skip("the secret was not given; --secret says it")
    watched = hooks(scene)
    watched.firsts()
    for delivery in watched.wait(REFUSED_ONCE, 2) or watched.firsts().values():
        expect(delivery.lowered().get(SIGNATURE_HEADER), f"there is no {SIGNATURE_HEADER}", delivery.shown())
        try:
            verify([scene.options.secret], delivery.lowered(), delivery.body, delivery.at_ms / 1000)
        except SignatureError as error:
            raise Broken(str(error), delivery.shown()) from None
    return delivery.shown()


@point(Level.COMPLETE, "docs/contract.md §5", "webhook")
def webhook_ids_tell_apart(scene: Scene) -> Played:
    """The webhooks of two jobs have two ids."""
    watched = hooks(scene)
    first, second = watched.taken(REFUSED_ONCE, 1)[0], watched.taken(REDIRECTED_ONCE, 1)[0]
    expect(not _id(first) or _id(first) != _id(second), "they have one id", first.shown(), second.shown())
    return first.shown(), second.shown()


@point(Level.COMPLETE, "docs/contract.md §5", "webhook")
def webhook_follows_no_redirect(scene: Scene) -> Played:
    """A redirect is not followed; the same address is called again."""
    watched = hooks(scene)
    watched.firsts()
    came = watched.wait(REDIRECTED_ONCE, 2)
    followed = watched.receiver.came(ELSEWHERE)
    expect(not followed, "the redirect was followed", *(each.shown() for each in (*came[:1], *followed)))
    return [each.shown() for each in watched.taken(REDIRECTED_ONCE, 2)]


@point(Level.COMPLETE, "W3C Trace Context §3.2, docs/contract.md §2, §5", "webhook trace")
def webhook_trace(scene: Scene) -> Played:
    """The traceparent of the submission goes with the webhook as it came."""
    for delivery in hooks(scene).firsts().values():
        said = delivery.lowered().get("traceparent")
        expect(said == TRACE, f"traceparent is {said or 'missing'}", delivery.shown())
    return delivery.shown()


@point(Level.COMPLETE, "docs/contract.md §5", "webhook")
def webhook_once(scene: Scene) -> Played:
    """An attempt that was answered 2xx is the last one."""
    watched = hooks(scene)
    counts = {path: len(ANSWERS.get(path, [])) + 1 for path in watched.firsts()}
    for path, count in counts.items():
        watched.taken(path, count)
    pause(QUIET_S)
    for path, count in counts.items():
        came = watched.receiver.came(path)
        expect(len(came) == count, "another attempt came after a 204", *(each.shown() for each in came))
    return came[-1].shown()


@point(Level.COMPLETE, "docs/contract.md §3", "webhook deliveries")
def deliveries(scene: Scene) -> Played:
    """The log of a webhook has each attempt, with its time and how it was answered."""
    watched = hooks(scene)
    watched.taken(REFUSED_ONCE, 2)
    path = scene.path(scene.profile.paths.deliveries, watched.jobs[REFUSED_ONCE].id)
    until_s = monotonic_s() + LOGGED_S
    while True:  # the attempt is written down after it was answered
        exchange = scene.play("GET", path)
        expect_status(exchange, 200)
        attempts = at(exchange.document, scene.profile.paths.deliveries_member) or []
        if [at(each, "status") for each in attempts] == [500, 204] or monotonic_s() > until_s:
            break
        pause(0.1)
    expect([at(each, "status") for each in attempts] == [500, 204], "it does not show a 500 and a 204", exchange)
    for each in attempts:
        expect(isinstance(at(each, "at"), str), "an attempt has no time", exchange)
        expect(type(at(each, "duration_s")) in (int, float), "an attempt has no duration_s", exchange)
    return exchange


@point(Level.COMPLETE, "docs/contract.md §3", "webhook deliveries")
def webhook_on_demand(scene: Scene) -> Played:
    """Who asks for a webhook again gets it, with the same id and the same bytes."""
    watched = hooks(scene)
    before = watched.taken(REFUSED_ONCE, 2)
    path = scene.path(scene.profile.paths.deliveries, watched.jobs[REFUSED_ONCE].id)
    exchange = scene.play("POST", path, (), b"")
    expect_status(exchange, 202, when="asking for it again")
    came = watched.receiver.wait_for(REFUSED_ONCE, len(before) + 1, scene.options.job_timeout_s)
    expect(len(came) > len(before), "it did not come", exchange)
    same = (_id(before[-1]), before[-1].body) == (_id(came[-1]), came[-1].body)
    expect(same, "it has another id, or another body", before[-1].shown(), came[-1].shown())
    return exchange, came[-1].shown()


def _may_omit(value: object, result: object) -> bool:
    """Whether a webhook may leave out this result, and says that it does. Source: docs/contract.md §5."""
    return at(value, "result_omitted") is True and len(json.dumps(result)) > RESULT_MOST_BYTES


def _id(delivery: Delivery) -> str:
    return delivery.lowered().get(ID_HEADER, "")
