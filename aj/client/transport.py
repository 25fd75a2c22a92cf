"""A request with its retries, within one deadline; and what an answer means.

What may be sent again without harm is sent again: after a connection error, an answer that was cut off, and after the
statuses that say that it may help. Nothing here knows what a job is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aj.client.address import Base
from aj.client.call import Answer, Call, NoAnswer
from aj.client.errors import ApiError, ClientError, JobGone, JobUnknown, NotUnderstood, Unreachable
from aj.client.exchange import Exchange
from aj.client.pacing import Deadline, pause, repeat_after_s

# Said before anything was done.
_REFUSED = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
# Said by a proxy that does not know what was done.
_UNCERTAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)


class Transport:
    """What a Client and its Jobs share. `timeout_s` is the time of a call for which nothing else is said.

    `on_trouble` hears of each attempt that failed and is followed by another one.
    """

    def __init__(
        self, base: Base, exchange: Exchange, timeout_s: float, on_trouble: Callable[[str], None] | None = None
    ) -> None:
        self.base, self.timeout_s, self._exchange, self._on_trouble = base, timeout_s, exchange, on_trouble

    def send(
        self,
        call: Call,
        deadline: Deadline | None = None,
        attempt_s: float = math.inf,
        on_trouble: Callable[[str], None] | None = None,
    ) -> Answer:
        """The first answer that is no passing trouble, whatever its status. An attempt has `attempt_s` at most.

        `on_trouble` is told what each attempt met after which another one follows.
        After an attempt that failed, the server is no longer asked to hold the answer: perhaps somebody between does
        not let it.

        Raises: Unreachable.
        """
        deadline = deadline or Deadline(self.timeout_s)
        attempt = 0
        while True:
            attempt += 1
            last: ApiError | None = None
            cause, asked_s = None, None
            try:
                answer = self._exchange.ask(call, deadline.sooner(attempt_s))
            except NoAnswer as trouble:
                met, may_repeat, cause = str(trouble), trouble.may_heal and call.is_idempotent, trouble.__cause__
            else:
                if answer.status not in (*_REFUSED, *_UNCERTAIN):
                    return answer
                last, asked_s = api_error(answer), answer.retry_after_s
                met, may_repeat = str(last), call.is_idempotent or answer.status in _REFUSED
            pause_s = repeat_after_s(attempt, asked_s)
            if not may_repeat or pause_s >= deadline.left_s():
                tries = "1 attempt" if attempt == 1 else f"{attempt} attempts"
                text = f"{call.method} {call.url}: {tries}, and the last met: {met}"
                raise Unreachable(text, last, retryable=may_repeat) from cause
            if self._on_trouble is not None:
                until = "until it answers" if math.isinf(deadline.left_s()) else f"for {deadline.left_s():.0f} s more"
                self._on_trouble(f"{call.method} {call.url}: {met}; it is tried again {until}")
            if on_trouble is not None:
                on_trouble(met)
            pause(pause_s)
            call = call.at_once()

    def location(self, answer: Answer, named: str) -> str:
        """What an answer names as an address. Raises: NotUnderstood: it is none, or elsewhere."""
        try:
            return self.base.joined(answer.call.url, named)
        except ClientError as refused:
            raise NotUnderstood(answer.status, {}, f"the answer names another address: {refused}") from None


def checked(answer: Answer, *, of_job: bool = False) -> Answer:
    """The answer, where it says yes. `of_job`: it is about a job, so that 404 and 410 say how that stands.

    Raises: ApiError.
    """
    if 200 <= answer.status < 300:
        return answer
    raise api_error(answer, of_job=of_job)


def api_error(answer: Answer, *, of_job: bool = False) -> ApiError:
    """What an answer that says no means."""
    status = answer.status
    if status == HTTPStatus.NOT_MODIFIED:
        return NotUnderstood(status, {}, "nothing has changed, though there was nothing to compare with")
    if status < 400:
        to = answer.fields.get("Location", "nowhere")[:200]
        return NotUnderstood(status, {}, f"a redirect to {to!r}, which is not followed")
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return NotUnderstood(status, {}, "a proxy wants to know who asks, and the API has not been asked")
    kind = {404: JobUnknown, 410: JobGone}.get(status, ApiError) if of_job else ApiError
    problem = _parsed(answer)
    if isinstance(problem, dict):
        return kind(status, problem, "the answer says no more", answer.retry_after_s)
    if kind is not ApiError:  # the API would say so in a problem document; a proxy that has lost its way has a page
        return NotUnderstood(status, {}, f"an answer that is no JSON object ({_kind(answer)}); {_of_no_words(answer)}")
    return ApiError(status, {}, _of_no_words(answer), answer.retry_after_s)


def _of_no_words(answer: Answer) -> str:
    """What is said of an answer that says nothing itself: mostly it is of another server, or of another place there."""
    asked = f"{answer.call.method} {answer.call.url}"
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        return f"{asked}: no API answers there, but perhaps a proxy; is it mounted below a prefix, such as /api?"
    return f"{asked}: the answer says no more"


def json_object(answer: Answer) -> dict[str, Any]:
    """The answer's body. Raises: NotUnderstood: it is no JSON object."""
    parsed = _parsed(answer)
    if not isinstance(parsed, dict):
        raise NotUnderstood(answer.status, {}, f"an answer that is no JSON object ({_kind(answer)})")
    return parsed


def json_list(answer: Answer, name: str) -> list[Any]:
    """The list that the answer's body has by this name. Raises: NotUnderstood: there is none."""
    found = json_object(answer).get(name)
    if not isinstance(found, list):
        raise NotUnderstood(answer.status, {}, f"an answer without {name}")
    return found


def _kind(answer: Answer) -> str:
    return answer.fields.get("Content-Type", "no type")[:80]


def _refused(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    """A number as it is; what overflows would be written again as a word that is no JSON."""
    number = float(text)
    return number if math.isfinite(number) else _refused(text)


def _parsed(answer: Answer) -> Any:
    try:
        return json.loads(answer.body, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
