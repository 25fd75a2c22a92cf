"""How quickly a caller may submit: the rate, what is left of it, and the header fields that say so. Pure."""

from __future__ import annotations

from dataclasses import dataclass

POLICY = '"submissions"'


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` submissions at once, and one more each `window_s / count` seconds."""

    count: int
    window_s: int


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a rate: `left` submissions in the next `reset_s` seconds, after which there are more."""

    rate: Rate
    left: int
    reset_s: int

    def fields(self) -> dict[str, str]:
        """The header fields. Source: draft-ietf-httpapi-ratelimit-headers-10 sections 3 and 4."""
        return {
            "RateLimit-Policy": f"{POLICY};q={self.rate.count};w={self.rate.window_s}",
            "RateLimit": f"{POLICY};r={self.left};t={self.reset_s}",
        }
