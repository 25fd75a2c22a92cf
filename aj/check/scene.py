"""What the points play with: requests to the API under check, jobs that are submitted and followed, and what is known.

Jobs that many points look at are followed once. The API key goes only to the origin that was asked for.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cached_property
from typing import Any, TypeVar, cast
from urllib.parse import quote, urljoin, urlsplit

from aj.check import wire
from aj.check.exchange import Answer, Exchange, Fields, Request, without
from aj.check.options import Call, Options
from aj.check.profile import as_word, at
from aj.check.story import Job, Story
from aj.check.verdicts import Broken, Skip
from aj.clock import monotonic_s
from aj.errors import CheckUnplayable

Made = TypeVar("Made")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
MAX_STRANGE_LOOKS = 5
SLOW_S = 0.5  # a job that takes less may end between two requests
GIVE_UP_AFTER = 3  # exchanges in a row without an answer


class Scene:
    """One check of one API."""

    def __init__(self, options: Options) -> None:
        self.options, self.profile = options, options.profile
        self._without_answer = 0
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}
        self._stack = ExitStack()
        self.expires_at: dict[str, Any] = {}  # what the documents of jobs that have ended say, by their ids

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def at_the_end(self, do: Callable[[], object]) -> None:
        """Does it when the check is over."""
        self._stack.callback(do)

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """What `make` gave at the first call of this name. Raises: Skip: as it did then, and does ever after."""
        if name not in self._made:
            try:
                self._made[name] = make()
            except Skip as skip:
                self._made[name] = skip
        made = self._made[name]
        if isinstance(made, Skip):
            raise Skip(str(made))
        return cast(Made, made)

    # -- requests --------------------------------------------------------------------------------------------

    def play(
        self,
        method: str,
        url: str,
        fields: Fields = (),
        body: bytes | None = None,
        framing: str = "length",
    ) -> Exchange:
        """One exchange. `url` may be relative to the base.

        Raises: Broken: no answer came. CheckUnplayable: nobody is there, or has not been for some exchanges.
        """
        options = self.options
        url = url if "://" in url else options.base_url.rstrip("/") + url
        asks = {name.lower() for name, _ in fields}
        name, form = self.profile.headers.shows_key
        if options.api_key and name.lower() not in asks and self.is_ours(url):
            fields = ((name, form.replace("{key}", options.api_key)), *fields)
        fields = tuple((name, value) for name, value in fields if value)  # an empty one stands for none
        if "accept" not in asks:
            fields = (("Accept", "application/json, application/problem+json"), *fields)
        request = Request(method, url, fields, body, framing, options.api_key)
        exchange = wire.play(request, options.timeout_s)
        self._count(exchange)
        if exchange.answer is None:
            raise Broken(f"no answer: {exchange.failure}", exchange)
        return exchange

    def _count(self, exchange: Exchange) -> None:
        with self._lock:
            self._without_answer = 0 if exchange.answer else self._without_answer + 1
            if self._without_answer >= GIVE_UP_AFTER or exchange.failure.startswith(wire.NOBODY_THERE):
                raise CheckUnplayable(f"{self.options.base_url}: {exchange.failure}")

    def is_ours(self, url: str) -> bool:
        """Whether `url` has the origin that was asked for."""
        return _origin(self.options.base_url) == _origin(url)

    def without_key(self, text: str) -> str:
        """`text` as it may be shown."""
        return without(self.options.api_key, text)

    def path(self, template: str, job_id: str) -> str:
        return template.replace("{id}", quote(job_id, safe=""))

    # -- submissions -----------------------------------------------------------------------------------------

    def body(self) -> bytes:
        """The body of the submission that is used where no other is wanted."""
        return json.dumps(self.options.call.body).encode()

    def send(self, body: bytes, fields: Fields = (), framing: str = "length", path: str = "") -> Exchange:
        """Sends these bytes as a submission; JSON where `fields` does not say otherwise."""
        submit = self.profile.submit
        named = {name.lower() for name, _ in fields}
        kind = [] if "content-type" in map(str.lower, submit.headers) else [("Content-Type", "application/json")]
        ours = [*kind, *submit.headers.items()]
        fields = (*((name, value) for name, value in ours if name.lower() not in named), *fields)
        return self.play(submit.method, path or self.options.call.path, fields, body, framing)

    def submit(self, call: Call | None = None, fields: Fields = ()) -> Job:
        """A job that was accepted. Raises: Skip: it was not."""
        self.submit_first()
        call = call or self.options.call
        try:
            exchange = self.send(json.dumps(call.body).encode(), fields, path=call.path)
        except Broken as broken:
            raise Skip(f"a submission was not accepted: {broken}") from None
        return self.job_of(exchange)

    def submit_first(self) -> Job:
        """The first job, which is submitted once. Raises: Skip: it was not accepted, and no other is tried."""
        return self.once("first", self._submit_first)

    def _submit_first(self) -> Job:
        try:
            return self.job_of(self.first_submission)
        except Broken as broken:
            raise Skip(f"a submission was not accepted: {broken}") from None

    @cached_property
    def first_submission(self) -> Exchange:
        """Raises: Broken: no answer came."""
        return self.send(self.body())

    def is_accepted(self, exchange: Exchange) -> bool:
        return exchange.status in self.profile.submit.accepted

    def job_of(self, exchange: Exchange) -> Job:
        """Which job was accepted. Raises: Skip: it was not, or nothing says which."""
        if not self.is_accepted(exchange):
            raise Skip(f"a submission was not accepted: {exchange.told()}")
        location = self.location(exchange)
        job_id = at(exchange.document, self.profile.submit.id) if self.profile.submit.id else None
        if not isinstance(job_id, str) or not job_id:
            job_id = self.profile.id_at(location)
        if not job_id:
            raise Skip("the answer to a submission does not say which job it made")
        if not location or not self.is_ours(location):
            location = self.options.base_url.rstrip("/") + self.path(self.profile.job.path, job_id)
        return Job(job_id, location, exchange)

    def value_of(self, body: bytes) -> Any:
        """A body as a JSON value, None where it is none."""
        return Answer(0, "", (), body).document

    def id_in(self, body: bytes) -> str:
        """The id that a job's document names, or nothing."""
        said = at(self.value_of(body), self.profile.job.id) if self.profile.job.id else None
        return said if isinstance(said, str) else ""

    def location(self, exchange: Exchange) -> str:
        """Where the answer says that the job is read, as an absolute address, or nothing."""
        value = exchange.field(self.profile.submit.location) if self.profile.submit.location else None
        try:
            return urljoin(exchange.request.url, value) if value else ""
        except ValueError:  # such as an IPv6 address without its end
            return ""

    # -- jobs ------------------------------------------------------------------------------------------------

    def look(self, job: Job, fields: Fields = ()) -> Exchange:
        return self.play("GET", job.url, fields)

    def status(self, exchange: Exchange) -> str | None:
        """Which of the four words the document says, None where it is another."""
        return self.profile.status_of(exchange.document)

    def is_final(self, exchange: Exchange) -> bool:
        return self.status(exchange) in ("succeeded", "failed")

    def is_active(self, exchange: Exchange) -> bool:
        return self.status(exchange) in ("queued", "running")

    def follow(self, job: Job) -> Story:
        """Looks at a job until it has ended. The caller is a checker: it looks more often than it is told to."""
        story, pause_s, strange = Story(job), FIRST_PAUSE_S, 0
        began_s = monotonic_s()
        until_s = began_s + self.options.job_timeout_s
        while True:
            try:
                look = self.look(job)
            except Broken as broken:
                story.looks += broken.exchanges
                story.trouble = str(broken)
                return story
            story.looks.append(look)
            if look.status == 200 and self.is_final(look):
                self.expires_at[job.id] = at(look.document, "expires_at")
                story.took_s = monotonic_s() - began_s
                return story
            strange += look.status != 200 or self.status(look) is None
            if strange >= MAX_STRANGE_LOOKS:
                word = as_word(at(look.document, self.profile.job.status))
                answered = f"a look at it was answered {look.told()}"
                story.trouble = f"its status is {word}" if look.status == 200 else answered
                return story
            if monotonic_s() > until_s:
                story.trouble = f"it has not ended within {self.options.job_timeout_s:g} s"
                return story
            pause(pause_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 1.4)

    @property
    def quick(self) -> Story:
        """The first job. Raises: Skip: it was not accepted."""
        return self.once("quick", lambda: self.follow(self.submit_first()))

    @property
    def slow(self) -> Story:
        """A job that can be watched at work. Raises: Skip."""
        return self.once("slow", lambda: self.follow(self.submit_slow()))

    @property
    def failing(self) -> Story:
        """A job that fails. Raises: Skip."""
        return self.once("failing", lambda: self.follow(self._submit_failing()))

    def _submit_failing(self) -> Job:
        if self.options.failing is None:
            raise Skip("it takes a job that fails; --failing-body says how to submit one")
        return self._submit_given("--failing-body", self.options.failing)

    def _submit_given(self, option: str, call: Call) -> Job:
        try:
            return self.submit(call)
        except Skip as skip:
            raise Skip(f"{option}: {skip}") from None

    def submit_slow(self) -> Job:
        """A job of some seconds. Raises: Skip."""
        if self.options.slow is None:
            raise Skip("it takes a job of a few seconds; --slow-body says how to submit one")
        return self._submit_given("--slow-body", self.options.slow)

    def stories(self) -> list[Story]:
        """All jobs that can be followed with what was given. Raises: Skip: not even the first."""
        stories = [self.quick]
        with suppress(Skip):  # whoever needs this one says why there is none
            stories.append(self.slow)
        with suppress(Skip):
            stories.append(self.failing)
        return stories

    def expect_slow(self, job: Job, *exchanges: Exchange) -> None:
        """Raises: Skip: answers about `job` say nothing, since it has ended, or a job of its kind does so at once."""
        has_ended = any(look.status == 200 and self.is_final(look) for look in (*exchanges, self.look(job)))
        if has_ended or (not self.slow.trouble and self.slow.took_s < SLOW_S):
            raise Skip("the slow job ended too soon; --slow-body says how to submit one that takes some seconds")

    def active_look(self) -> Exchange:
        """A look that met a job before its end. Raises: Skip: there was none."""
        for story in self.stories():
            for look in story.looks:
                if look.status == 200 and self.is_active(look):
                    return look
        raise Skip("no look met a job before its end; --slow-body says how to submit one that takes some seconds")


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    """Scheme, host and port; None where there are none. Source: RFC 6454 section 4."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)
