"""Level complete, what else is promised: metadata, other tasks, and what the API tells of itself."""

from __future__ import annotations

import json

from aj.check.options import Call
from aj.check.point import Level, Played, point
from aj.check.profile import at
from aj.check.scene import Scene
from aj.check.verdicts import Skip, expect, expect_size_taken, expect_status

METADATA_MOST_BYTES = 4096


@point(Level.COMPLETE, "docs/contract.md §2, §3", "metadata")
def metadata(scene: Scene) -> Played:
    """The metadata of a submission stands in the job's document as it came."""
    name, value = scene.profile.submit.metadata, {"order": 17, "note": "grün ✓", "empty": None}
    job = scene.submit(Call(scene.options.call.path, {**_object(scene), name: value}))
    look = scene.follow(job).end
    expect(at(look.document, name) == value, f"{name} is {at(look.document, name)!r}", job.submission, look)
    return job.submission, look


@point(Level.COMPLETE, "RFC 9110 §15.5.21, docs/contract.md §2", "metadata validation")
def metadata_limits(scene: Scene) -> Played:
    """Metadata that is no object, or over 4096 bytes, is 422."""
    scene.submit()
    for value in ("text", [1], {"note": "x" * METADATA_MOST_BYTES}):
        exchange = scene.send(json.dumps({**_object(scene), scene.profile.submit.metadata: value}).encode())
        expect_size_taken(exchange)
        expect_status(exchange, 422)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §15.5.21, docs/contract.md §2", "task validation")
def unknown_task(scene: Scene) -> Played:
    """A task that nobody knows is 422."""
    scene.submit()
    exchange = scene.send(json.dumps({**_object(scene), scene.profile.submit.task: "no such task"}).encode())
    expect_status(exchange, 422)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §13.1.2, docs/contract.md §3", "about")
def self_description(scene: Scene) -> Played:
    """What the API tells of itself is JSON with an ETag, and needs no API key."""
    without_key = ((scene.profile.headers.shows_key[0], ""),)
    for path in scene.profile.paths.about:
        exchange = scene.play("GET", path, without_key)
        expect_status(exchange, 200)
        expect(exchange.document is not None, "it is not JSON", exchange)
        tag = exchange.field("ETag")
        expect(tag, "there is no ETag", exchange)
        again = scene.play("GET", path, (*without_key, ("If-None-Match", tag or "")))
        expect_status(again, 304, when="If-None-Match with its ETag")
    return exchange


@point(Level.COMPLETE, "docs/contract.md §3", "health")
def health(scene: Scene) -> Played:
    """The API says that it is alive and ready."""
    for path in scene.profile.paths.health:
        exchange = scene.play("GET", path, ((scene.profile.headers.shows_key[0], ""),))
        expect_status(exchange, 200, may_be_busy=False)
    return exchange


def _object(scene: Scene) -> dict[str, object]:
    body = scene.options.call.body
    if not isinstance(body, dict):
        raise Skip("the body is not an object; --body says one")
    return body
