"""A job under check, and what was seen of it. Asks nobody."""

from __future__ import annotations

from dataclasses import dataclass, field

from aj.check.exchange import Exchange
from aj.check.verdicts import Skip


@dataclass(frozen=True, slots=True)
class Job:
    """A submission that was accepted: its id, where it is read, and the exchange."""

    id: str
    url: str
    submission: Exchange


@dataclass(slots=True)
class Story:
    """A job from its submission to its end. `trouble` says why the end was not seen, `took_s` how long it took."""

    job: Job
    looks: list[Exchange] = field(default_factory=list)
    trouble: str = ""
    took_s: float = 0.0

    @property
    def end(self) -> Exchange:
        """The look that saw the end. Raises: Skip: there was none."""
        if self.trouble:
            raise Skip(f"the end of a job was not seen: {self.trouble}")
        return self.looks[-1]
