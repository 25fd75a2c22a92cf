"""A request, the answer to it, and the word for having none. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from aj.client.pacing import retry_after_s
from aj.version import __version__

USER_AGENT = f"aj-client/{__version__}"


@dataclass(frozen=True, slots=True)
class Call:
    """A request. Where `hold_s` is not None, the server is asked to hold it for so long.

    `is_idempotent` says whether twice is as good as once.
    """

    method: str
    url: str
    body: bytes | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    hold_s: int | None = None
    is_idempotent: bool = True

    def at_once(self) -> Call:
        """The same, without asking to be held."""
        return replace(self, hold_s=None)

    def headers(self) -> dict[str, str]:
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json", **self.fields}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.hold_s is not None:
            headers["Prefer"] = f"wait={self.hold_s}"
        return headers


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer to `call`, which took `took_s`. `fields` finds names in any case."""

    call: Call
    status: int
    fields: Mapping[str, str]
    body: bytes
    next_url: str | None
    took_s: float

    @property
    def retry_after_s(self) -> float | None:
        return retry_after_s(self.fields)


class NoAnswer(Exception):  # it never reaches a user
    """An attempt brought no answer. `may_heal` says whether another one might."""

    def __init__(self, text: str, *, may_heal: bool = True) -> None:
        super().__init__(text)
        self.may_heal = may_heal
