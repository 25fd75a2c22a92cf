"""Every way `aj` says no, as one tree.

    AjError
    ├── SettingsError            the process cannot start; the message is one line for the operator
    ├── TaskError                raised by a task: its text may be shown to the caller
    ├── SignatureError           a webhook that cannot be trusted
    │   ├── SignatureMissing         headers absent or unreadable: the sender must be mended
    │   └── SignatureInvalid         wrong or stale: refuse
    ├── AddressRefused           an outbound address that may not be called
    ├── DeliveryFailed           one attempt to deliver a webhook brought no answer
    ├── CheckError               `aj check` cannot go on: a wrong option or profile, or nobody answers
    │   └── CheckUnplayable          nobody answers at the address
    └── Problem                  an answer to an HTTP request, as RFC 9457 wants it
        ├── 400 Malformed, MalformedKey, MalformedQuery
        ├── 401 Unauthorized
        ├── 404 JobUnknown
        ├── 409 AlreadyEnded, StillActive, NotPossible
        ├── 410 JobGone, JobDeleted
        ├── 413 BodyTooLarge
        ├── 415 UnsupportedMedia
        ├── 422 Invalid, KeyReused
        ├── 429 RateExceeded
        └── 503 QueueFull, StoreUnavailable, NotReady

This file holds the words only: it imports nothing of ours and knows no framework.
A message names the value, the limit and the next step, and never holds a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


class AjError(Exception):
    """Whatever `aj` raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """So that each of them comes out of a pickle as it went in, such as out of a pool of processes.

        An exception's own way calls the class with the text alone, which fits no class that wants more than a text.
        """
        return _again, (type(self), self.args), vars(self)


class SettingsError(AjError):
    """A setting is wrong: the variable, its value and what is accepted, in one line."""


class TaskError(AjError):
    """Raise this in a task to fail the job with a text that its caller may read."""


class SignatureError(AjError):
    """A webhook cannot be trusted."""


class SignatureMissing(SignatureError):
    """A webhook lacks the headers of Standard Webhooks, or they cannot be read."""


class SignatureInvalid(SignatureError):
    """A webhook's signature matches none of the secrets, or its timestamp is too far from now."""


class AddressRefused(AjError):
    """An outbound address may not be called; the message says which rule refused it."""


class DeliveryFailed(AjError):
    """An attempt brought no HTTP answer. `kind` is a stable word for the reason, such as `timeout`."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one member of the request body.

    `pointer` is a JSON Pointer in URI fragment form, such as `#/n`.
    Source: RFC 6901 section 6, RFC 9457 section 3.
    """

    pointer: str
    detail: str


class CheckError(AjError):
    """`aj check` was asked for what it cannot do; the message is one line for whoever asked."""


class CheckUnplayable(CheckError):
    """Nobody answers at the address, or not any more."""


class Problem(AjError):
    """An HTTP error in the form of RFC 9457.

    `slug` ends the problem's `type`, `status` is the HTTP status, `retryable` says whether the same
    request may succeed later without being changed. `fields` are header fields that come along.
    """

    slug: ClassVar[str]
    title: ClassVar[str]
    status: ClassVar[int]
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.detail, self.fields = detail, fields or {}


class Malformed(Problem):
    slug, title, status = "malformed-body", "The request body is not the JSON it claims to be", 400


class MalformedKey(Problem):
    slug, title, status = "malformed-idempotency-key", "The Idempotency-Key is malformed", 400


class Unauthorized(Problem):
    slug, title, status = "unauthorized", "An API key is needed", 401


class JobUnknown(Problem):
    slug, title, status = "job-unknown", "No such job", 404


class JobGone(Problem):
    """The job existed; its result is past its life since `expired_at`, in RFC 3339."""

    slug, title, status = "job-expired", "The job has expired", 410

    def __init__(self, detail: str, expired_at: str) -> None:
        super().__init__(detail)
        self.expired_at = expired_at


class JobDeleted(Problem):
    """The job existed, and its caller put an end to that at `expired_at`, in RFC 3339."""

    slug, title, status = "job-deleted", "The job was deleted", 410

    def __init__(self, detail: str, expired_at: str) -> None:
        super().__init__(detail)
        self.expired_at = expired_at


class MalformedQuery(Problem):
    slug, title, status = "malformed-query", "The query is malformed", 400


class AlreadyEnded(Problem):
    slug, title, status = "already-ended", "The job has ended already", 409


class StillActive(Problem):
    slug, title, status = "still-active", "The job has not ended yet", 409


class NotPossible(Problem):
    """The job is not of the kind that this can be done to."""

    slug, title, status = "not-possible", "This cannot be done to the job", 409


class BodyTooLarge(Problem):
    slug, title, status = "body-too-large", "The request body is too large", 413


class UnsupportedMedia(Problem):
    slug, title, status = "unsupported-media-type", "The request body must be plain application/json", 415


class Invalid(Problem):
    """The body is well-formed but wrong; `errors` says where."""

    slug, title, status = "invalid-submission", "The submission is not valid", 422

    def __init__(self, detail: str, errors: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.errors = errors


class KeyReused(Problem):
    slug, title, status = "idempotency-key-reused", "The Idempotency-Key was used for another payload", 422


class RateExceeded(Problem):
    """The caller submits too quickly; it may again in `retry_after_s`."""

    slug, title, status, retryable = "rate-exceeded", "Too many submissions", 429, True

    def __init__(self, detail: str, retry_after_s: int, fields: Mapping[str, str]) -> None:
        super().__init__(detail, fields)
        self.retry_after_s = retry_after_s


class QueueFull(Problem):
    slug, title, status, retryable = "queue-full", "The queue is full", 503, True


class StoreUnavailable(Problem):
    slug, title, status, retryable = "store-unavailable", "The job store cannot be used at the moment", 503, True


class NotReady(Problem):
    """The deployment cannot keep its promises at the moment; `checks` says why, by name."""

    slug, title, status, retryable = "not-ready", "The deployment is not ready", 503, True

    def __init__(self, detail: str, checks: dict[str, str]) -> None:
        super().__init__(detail)
        self.checks = checks


def _again(kind: type[AjError], args: tuple[Any, ...]) -> AjError:
    return kind.__new__(kind, *args)


def causes(error: BaseException) -> Iterator[BaseException]:
    """`error`, then what it wraps in any of the ways of requests and urllib3, outermost first."""
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and not any(each is other for other in seen):
            seen.append(each)
            yield each
            waiting += [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]
