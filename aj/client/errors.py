"""What the client raises, split by what its caller can do about it.

    ClientError (an AjError)         also by itself: an address or an argument that cannot be used
    ├── ApiError                     the server refused; asking again unchanged brings the same
    │   ├── JobUnknown                   404: no such job, or not this caller's
    │   ├── JobGone                      410: the job has expired or was deleted
    │   └── NotUnderstood                an answer that is none of the contract's
    ├── Unreachable                  no usable answer in time; what is safe to ask again, it says
    ├── JobFailed                    the job ended without a result        (in `aj.client.job`)
    └── JobTimeout                   the wait is over, the job goes on     (in `aj.client.job`)

No message holds the API key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aj.errors import AjError

NO_TYPE = "about:blank"


class ClientError(AjError):
    """Whatever the client raises on purpose."""


class ApiError(ClientError):
    """The server answered, and the answer is no.

    `status` is the HTTP status. `problem` is the problem document as it came, empty where there was none; `type`,
    `detail` and `errors` are its members, with the defaults of RFC 9457. `retry_after_s` is what the answer asked for.
    `idempotency_key` is the key of a submission that may have been accepted all the same, and None for all else.
    """

    idempotency_key: str | None = None

    def __init__(
        self, status: int, problem: Mapping[str, Any], otherwise: str, retry_after_s: float | None = None
    ) -> None:
        """`otherwise` is said where the problem has neither detail nor title."""
        self.status, self.problem, self.retry_after_s = status, dict(problem), retry_after_s
        self.type = _text(problem.get("type")) or NO_TYPE
        self.detail = _text(problem.get("detail")) or _text(problem.get("title")) or otherwise
        errors = problem.get("errors")
        self.errors = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
        super().__init__(f"{status}: {self.detail}{''.join(map(_shown, self.errors))}")

    def keep(self, key: str) -> None:
        """Not for users: notes the key of the submission to which this was the answer, where it may count all the same.

        A server that broke down, or whoever else answered in its place, may have accepted the job before.
        """
        if isinstance(self, NotUnderstood) or self.status >= 500:
            self.idempotency_key = key
            self.args = (f"{self}; {is_safe_again(key)}",)

    @property
    def slug(self) -> str:
        """The last word of `type`, such as `queue-full`; empty where the problem has no type of its own."""
        return "" if self.type == NO_TYPE else self.type.replace("/", ":").rpartition(":")[2]


class JobUnknown(ApiError):
    """No job has this address, or it is another caller's, or nothing is known of it any more."""


class JobGone(ApiError):
    """The job was there; it has expired or was deleted. `expired_at` says when, in RFC 3339, where the server does."""

    @property
    def expired_at(self) -> str | None:
        return _text(self.problem.get("expired_at")) or None


class NotUnderstood(ApiError):
    """An answer that the contract does not have: no JSON, an unknown status of a job, a redirect, another's job."""


class Unreachable(ClientError):
    """No usable answer in time.

    `last` is the last answer, such as a 503, and None where the last attempt had none. `retryable` says whether asking
    again later may help, and is safe. For a submission `idempotency_key` is the key with which submitting the same
    again is safe: whether the job was accepted is not known. It is None for every other request.
    """

    def __init__(
        self, text: str, last: ApiError | None = None, idempotency_key: str | None = None, *, retryable: bool = True
    ) -> None:
        super().__init__(text)
        self.last, self.retryable, self.idempotency_key = last, retryable, idempotency_key


def is_safe_again(key: str) -> str:
    """What is said of a submission whose fate is not known."""
    return (
        f"whether the job was accepted is not known, and idempotency_key={key!r} makes it safe to submit the same again"
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _shown(error: Mapping[str, Any]) -> str:
    return f"; {_text(error.get('pointer'))} {_text(error.get('detail'))}"
