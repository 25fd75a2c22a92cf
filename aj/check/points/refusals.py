"""Level complete, what is refused: each with its code, in one form, and what is allowed although it looks odd."""

from __future__ import annotations

import json
from typing import Any

from aj.check.exchange import Exchange, Fields
from aj.check.point import Level, Played, point
from aj.check.problems import expect_pointer, expect_problem
from aj.check.scene import Scene
from aj.check.verdicts import Skip, expect, expect_status

MAX_DEPTH = 64
_OVERFLOW = (b"NaN", b"Infinity", b"-Infinity", b"1e400")
_JSON = "RFC 8259"
_BAD_CALLBACKS = (
    "ftp://example.com/",
    "http://user:word@example.com/",
    "http://example.com/#part",
    "http://",
    "example.com",
    "http://169.254.169.254/latest/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://[::ffff:10.0.0.1]/",
)


@point(Level.COMPLETE, "RFC 9110 §15.5.1, docs/contract.md §2", "refusals")
def empty_body(scene: Scene) -> Played:
    """An empty body is 400."""
    return _refused(scene, 400, b"")


@point(Level.COMPLETE, "RFC 9112 §6.3, docs/contract.md §2", "refusals")
def missing_length(scene: Scene) -> Played:
    """A request that says no length of its body has none: 400, or 411."""
    scene.submit()
    exchange = scene.send(scene.body(), framing="none")
    expect_status(exchange, 400, 411, when="a body without Content-Length")
    return exchange


@point(Level.COMPLETE, f"{_JSON} §2, docs/contract.md §2", "refusals")
def not_json(scene: Scene) -> Played:
    """What is not JSON is 400."""
    return _refused(scene, 400, b"{", b"n=5", b"{'n': 5}", b'{"n": 05}', b'{"n": 5,}', b"\x00")


@point(Level.COMPLETE, f"{_JSON} §8.1, docs/contract.md §2", "refusals")
def not_utf8(scene: Scene) -> Played:
    """A body that is not UTF-8 is 400."""
    body = scene.body()
    return _refused(scene, 400, body.decode().encode("utf-16"), body[:-1] + b', "\xff": 1}')


@point(Level.COMPLETE, f"{_JSON} §2, docs/contract.md §2", "refusals")
def trailing_bytes(scene: Scene) -> Played:
    """JSON with something behind it is 400."""
    return _refused(scene, 400, scene.body() + b"x", scene.body() + b" {}")


@point(Level.COMPLETE, "RFC 9112 §8, docs/contract.md §2", "refusals")
def cut_body(scene: Scene) -> Played:
    """A body that is shorter than its Content-Length is 400."""
    if scene.options.base_url.startswith("https:"):
        raise Skip("over TLS half a connection cannot be closed")
    return _refused(scene, 400, scene.body(), framing="cut")


@point(Level.COMPLETE, f"RFC 7493 §2.3, {_JSON} §4, docs/contract.md §2", "refusals")
def duplicate_names(scene: Scene) -> Played:
    """A member name that is repeated is 400."""
    return _refused(scene, 400, _with(scene, b'"twice": 1, "twice": 1'))


@point(Level.COMPLETE, f"{_JSON} §6, RFC 7493 §2.2, docs/contract.md §2", "refusals")
def no_number(scene: Scene) -> Played:
    """NaN, Infinity and a number that overflows are 400."""
    return _refused(scene, 400, *(_with(scene, b'"x": ' + word) for word in _OVERFLOW))


@point(Level.COMPLETE, f"{_JSON} §9, docs/contract.md §2", "refusals")
def deep_nesting(scene: Scene) -> Played:
    """Nesting deeper than 64 is 400, and nesting by the ten thousand no server error."""
    just, much = (_with(scene, b'"x": ' + b"[" * depth + b"]" * depth) for depth in (MAX_DEPTH + 1, 10_000))
    _refused(scene, 400, just)
    exchange = scene.send(much)
    expect_status(exchange, 400, 413)  # it may be too large before anybody looks at it
    return exchange


@point(Level.COMPLETE, f"{_JSON} §8.2, docs/contract.md §2", "refusals")
def lone_surrogate(scene: Scene) -> Played:
    """Half a surrogate pair is 400."""
    return _refused(scene, 400, _with(scene, rb'"x": "\ud800"'))


@point(Level.COMPLETE, "RFC 9110 §15.5.14, docs/contract.md §2", "too-large")
def too_large(scene: Scene) -> Played:
    """A body over the limit is 413, with Content-Length and in chunks."""
    body = scene.body().ljust(scene.profile.submit.too_large_bytes)
    _refused(scene, 413, body)
    return _refused(scene, 413, body, framing="chunked")


@point(Level.COMPLETE, "RFC 9112 §7.1, docs/contract.md §2", "refusals")
def chunked_body(scene: Scene) -> Played:
    """A body in chunks is as good as another."""
    return _welcome(scene, framing="chunked")


@point(Level.COMPLETE, "RFC 9110 §15.5.16, docs/contract.md §2", "media-type")
def wrong_media_type(scene: Scene) -> Played:
    """Another media type than JSON is 415, and the answer says what is accepted."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
        exchange = _refused(scene, 415, scene.body(), fields=(("Content-Type", kind),))
    named = "application/json" in (exchange.field("Accept") or "").lower()
    expect(named, "there is no Accept: application/json in the 415", exchange)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §8.3.1, docs/contract.md §2", "media-type")
def media_type_parameters(scene: Scene) -> Played:
    """Parameters of the media type, such as a charset, are allowed, and letters of either case."""
    _welcome(scene, (("Content-Type", "Application/JSON"),))
    return _welcome(scene, (("Content-Type", "application/json; charset=utf-8"),))


@point(Level.COMPLETE, "RFC 9110 §8.3, docs/contract.md §2", "media-type")
def missing_media_type(scene: Scene) -> Played:
    """A body without a media type counts as JSON."""
    return _welcome(scene, (("Content-Type", ""),))


@point(Level.COMPLETE, "RFC 9110 §8.4, docs/contract.md §2", "media-type")
def encoded_body(scene: Scene) -> Played:
    """A body with a Content-Encoding is 415."""
    return _refused(scene, 415, scene.body(), fields=(("Content-Encoding", "gzip"),))


@point(Level.COMPLETE, "RFC 9110 §15.5.21, docs/contract.md §2", "refusals")
def not_an_object(scene: Scene) -> Played:
    """JSON that is not an object is refused: 422, or what the profile says."""
    scene.submit()
    for body in (b"[]", b"5", b"null", b'"text"', b"true"):
        exchange = scene.send(body)
        expect_status(exchange, *scene.profile.submit.invalid)
    return exchange


@point(Level.COMPLETE, "RFC 9110 §15.5.21, docs/contract.md §2", "validation")
def unknown_member(scene: Scene) -> Played:
    """A member that nobody knows is 422."""
    return _refused(scene, 422, _with(scene, b'"no_such_member": 1'))


@point(Level.COMPLETE, "RFC 9110 §15.5.21, docs/contract.md §2", "validation")
def wrong_type(scene: Scene) -> Played:
    """A text, a fraction or a truth value is no whole number: 422."""
    body, name = _object(scene), _number(scene)
    return _refused(scene, 422, *(json.dumps({**body, name: each}).encode() for each in ("5", 5.0, True, None, [5])))


@point(Level.COMPLETE, "RFC 9457 §3.2, RFC 6901 §6, docs/contract.md §2", "validation problem")
def pointers(scene: Scene) -> Played:
    """The answer to a member that is wrong points at it."""
    name = _number(scene)
    scene.submit()
    for body, member in (
        (_with(scene, b'"no_such_member": 1'), "no_such_member"),
        (b'{"%s": "5"}' % name.encode(), name),
    ):
        exchange = scene.send(body)
        if exchange.status < 400:
            raise Skip("it was not refused; see unknown-member and wrong-type")
        expect_pointer(exchange, f"#/{member}")
    return exchange


@point(Level.COMPLETE, "docs/contract.md §2, §5", "webhook")
def bad_callback(scene: Scene) -> Played:
    """An address that may not be called is 422."""
    for address in _BAD_CALLBACKS:
        exchange = _refused(scene, 422, json.dumps({**_object(scene), scene.profile.callback: address}).encode())
    return exchange


@point(Level.COMPLETE, "RFC 9457 §3, docs/contract.md §2", "problem")
def problem_documents(scene: Scene) -> Played:
    """Each refusal is a problem document whose members are of their kinds, with its own status in it."""
    job_path = scene.profile.job.path
    scene.submit()
    refusals = [
        scene.send(b"{"),
        scene.send(scene.body(), (("Content-Type", "text/plain"),)),
        scene.send(b"[]"),
        scene.play("GET", job_path.replace("{id}", "no-such-job")),
        scene.play("PATCH", scene.profile.submit.path),
    ]
    refusals = [each for each in refusals if 400 <= each.status < 500]  # an error of the server is no refusal
    for exchange in refusals:
        expect_problem(exchange)
    if not refusals:
        raise Skip("nothing was refused")
    return refusals[0]


@point(Level.COMPLETE, "RFC 9110 §15.5.6, docs/contract.md §3", "allow")
def unsupported_method(scene: Scene) -> Played:
    """A method that a resource does not have is 405, with Allow."""
    for url in (scene.profile.submit.path, scene.quick.job.url):
        exchange = scene.play("PATCH", url)
        expect_status(exchange, 405, when="PATCH")
        expect(exchange.field("Allow"), "there is no Allow in the 405", exchange)
    return exchange


@point(Level.COMPLETE, "docs/contract.md §3", "slash")
def no_redirect_of_a_slash(scene: Scene) -> Played:
    """A slash behind the path of submissions is 404, and not a redirect that drops the body."""
    scene.submit()
    path, mark, query = scene.profile.submit.path.partition("?")
    url = f"{path}/{mark}{query}"
    exchange = scene.play("POST", url, (("Content-Type", "application/json"),), scene.body())
    expect_status(exchange, 404, when="a slash behind the path")
    return exchange


@point(Level.COMPLETE, "RFC 9110 §11.6.1, RFC 6750 §3, docs/contract.md §2", "api-key")
def missing_key(scene: Scene) -> Played:
    """Without the API key a request is 401, and the answer says which scheme is wanted."""
    if not scene.options.api_key:
        raise Skip("no API key was given; AJ_API_KEY says one")
    scene.submit()
    name, form = scene.profile.headers.shows_key
    values = ("", form.replace("{key}", "wrong"))
    answers = [scene.send(scene.body(), ((name, value),)) for value in values]
    if not scene.options.key_is_wanted and all(scene.is_accepted(each) for each in answers):
        raise Skip(
            "the API asks for no key, and AJ_API_KEY may be meant for another; --api-key says that it has to ask"
        )
    for value, exchange in zip(values, answers, strict=True):
        expect_status(exchange, 401, when="a wrong API key" if value else "no API key")
        expect(exchange.field("WWW-Authenticate"), "there is no WWW-Authenticate in the 401", exchange)
    return exchange


def _object(scene: Scene) -> dict[str, Any]:
    body = scene.options.call.body
    if not isinstance(body, dict) or not body:
        raise Skip("the body is not an object with members; --body says one")
    return body


def _number(scene: Scene) -> str:
    """The first member of the default body that is a whole number. Raises: Skip: there is none."""
    name = next((each for each, value in _object(scene).items() if type(value) is int), None)
    if name is None:
        raise Skip("the body has no member that is a whole number; --body says one")
    return name


def _with(scene: Scene, member: bytes) -> bytes:
    """The default body with one more member, given as JSON text."""
    return json.dumps(_object(scene)).encode()[:-1] + b", " + member + b"}"


def _refused(scene: Scene, status: int, *bodies: bytes, fields: Fields = (), framing: str = "length") -> Exchange:
    """The last of these submissions; each has to be refused so. Raises: Skip: not even a good one is accepted."""
    scene.submit()
    for body in bodies:
        exchange = scene.send(body, fields, framing)
        expect_status(exchange, status)
    return exchange


def _welcome(scene: Scene, fields: Fields = (), framing: str = "length") -> Exchange:
    scene.submit()
    exchange = scene.send(scene.body(), fields, framing)
    expect_status(exchange, *scene.profile.submit.accepted)
    return exchange
