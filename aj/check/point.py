"""What is checked: points, each a sentence with its source and a function that plays it, and what is found of them.

A function of a point gives the exchanges that show that it holds, or raises Broken or Skip (`verdicts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from inspect import getdoc

from aj.check.exchange import Exchange
from aj.check.scene import Scene

Played = Exchange | Sequence[Exchange]


class Level(StrEnum):
    """How much of the contract is played; each level has those before it in it."""

    BASIC = "basic"
    SAFE_RETRY = "safe-retry"
    COMPLETE = "complete"

    def includes(self, other: Level) -> bool:
        order = list(Level)
        return order.index(other) <= order.index(self)


class State(StrEnum):
    HELD = "held"
    BROKEN = "broken"
    SKIPPED = "skipped"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Point:
    """One sentence of the contract. `group` names the feature that it belongs to, for profiles that lack it."""

    name: str
    level: Level
    sentence: str
    source: str
    group: str
    play: Callable[[Scene], Played]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of a point. `why` is empty where it holds."""

    point: Point
    state: State
    why: str
    exchanges: tuple[Exchange, ...] = ()


def point(level: Level, source: str, group: str = "") -> Callable[[Callable[[Scene], Played]], Point]:
    """Makes a point of a function: its name with dashes names the point, its docstring is the sentence."""

    def make(play: Callable[[Scene], Played]) -> Point:
        return Point(play.__name__.replace("_", "-"), level, getdoc(play) or "", source, group, play)

    return make
