"""What whoever checks has said, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aj.check.profile import Profile


@dataclass(frozen=True, slots=True)
class Call:
    """A submission: the path it goes to, and its body as a JSON value."""

    path: str
    body: Any


@dataclass(frozen=True, slots=True)
class Options:
    """Times are seconds. Calls are None where none was given: `slow` is a job of some seconds, `failing` one that
    fails, `expiring` one whose result lives for a few seconds only."""

    base_url: str
    profile: Profile
    call: Call
    slow: Call | None = None
    failing: Call | None = None
    expiring: Call | None = None
    api_key: str = ""
    key_is_wanted: bool = True  # whether the API has to ask for a key: one in the environment may be left over
    callback: tuple[str, int] | None = None  # host and port under which the API reaches this machine
    secret: bytes | None = None
    timeout_s: float = 10.0
    job_timeout_s: float = 60.0
