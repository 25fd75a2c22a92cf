"""Plays the points one after another and says what was found of each. Prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aj.check.exchange import Exchange
from aj.check.lifetime import life_over
from aj.check.point import Finding, Level, Point, State
from aj.check.profile import Profile
from aj.check.scene import Scene
from aj.check.verdicts import Broken, Skip
from aj.errors import CheckUnplayable


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that was found; `unplayable` says why the check could not be played to its end, or nothing."""

    findings: tuple[Finding, ...]
    unplayable: str = ""

    def count(self, state: State) -> int:
        return sum(finding.state is state for finding in self.findings)


def run(scene: Scene, points: Iterable[Point], level: Level, tell: Callable[[Finding], None]) -> Outcome:
    """Plays the points of `level`, and tells of each as soon as it is known."""
    findings: list[Finding] = []
    for each in points:
        if not level.includes(each.level):
            continue
        try:
            finding = _played(scene, each)
        except CheckUnplayable as error:
            return Outcome(tuple(findings), scene.without_key(str(error)))
        findings.append(finding)
        tell(finding)
    return Outcome(tuple(findings))


def _played(scene: Scene, each: Point) -> Finding:
    lacking = not_offered(scene.profile, each)
    if lacking:
        return Finding(each, State.NOT_APPLICABLE, lacking)
    try:
        shown = each.play(scene)
    except Broken as broken:
        over = life_over(broken.exchanges, scene.expires_at)
        if over:
            return Finding(each, State.SKIPPED, scene.without_key(over))
        return Finding(each, State.BROKEN, scene.without_key(str(broken)), broken.exchanges)
    except Skip as skip:
        return Finding(each, State.SKIPPED, scene.without_key(str(skip)))
    except CheckUnplayable:
        raise
    except Exception as error:  # an answer that no point foresaw is the server's, and must not end the check
        return Finding(each, State.BROKEN, f"an answer cannot be understood ({type(error).__name__})")
    return Finding(each, State.HELD, "", (shown,) if isinstance(shown, Exchange) else tuple(shown))


def not_offered(profile: Profile, each: Point) -> str:
    """Why the profile has no such point, or nothing."""
    groups = each.group.split()
    reasons = (profile.not_offered.get(name) for name in (each.name, *groups))
    reason = next((said for said in reasons if said), "")
    needed = {
        "location": ("submit.location", profile.submit.location),
        "too-large": ("submit.too_large_bytes", profile.submit.too_large_bytes),
        "idempotency": ("headers.idempotency", profile.headers.idempotency),
        "replayed": ("headers.replayed", profile.headers.replayed),
        "cancel": ("paths.cancel", profile.paths.cancel),
        "delete": ("paths.delete", profile.paths.delete),
        "metadata": ("submit.metadata", profile.submit.metadata),
        "task": ("submit.task", profile.submit.task),
        "about": ("paths.about", profile.paths.about),
        "health": ("paths.health", profile.paths.health),
        "deliveries": ("paths.deliveries", profile.paths.deliveries),
        "bare-result": ("paths.result", profile.paths.result),
        "list": ("paths.list", profile.paths.list),
        "webhook": ("callback", profile.callback),
        "id": ("job.id", profile.job.id),
        "error": ("job.error", profile.job.error),
        "error-types": ("job.error_types", profile.job.error_types),
        "times": ("job.times", profile.job.times),
    }
    lacking = [needed[name][0] for name in groups if name in needed and not needed[name][1]]
    return reason or (f"the profile has no {lacking[0]}" if lacking else "")
