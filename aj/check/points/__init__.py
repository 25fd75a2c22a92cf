"""The points, in the order in which they are played: each module has those of one subject."""

from __future__ import annotations

from aj.check.point import Point
from aj.check.points import basic, control, extras, reading, refusals, retry, webhooks

MODULES = (basic, retry, refusals, reading, control, extras, webhooks)
ALL: tuple[Point, ...] = tuple(each for module in MODULES for each in vars(module).values() if isinstance(each, Point))
