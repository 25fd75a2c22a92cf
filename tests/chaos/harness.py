"""One run of chaos: start, load and kill, let everything come to its end, audit."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from aj.clock import monotonic_s
from tests.chaos.audit import Violation, audit
from tests.chaos.evidence import Evidence, gather
from tests.chaos.killer import Killer
from tests.chaos.scene import PREFIX, QUEUE, Scene
from tests.support.processes import accepts

STEP_S = 0.02
CLIENTS_END_S, DRAIN_S = 60.0, 120.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What kind of run it is. The seed chooses kills and jobs; what meets what is up to the machine."""

    seconds: float
    seed: int
    kills_per_minute: float
    clients: int = 12
    open_jobs: int = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run brought. `ended_in_time` says whether everything came to its end before the audit."""

    evidence: Evidence
    kills: Counter[str]
    violations: list[Violation]


def run(folder: Path, wish: Wish, say: Callable[[str], None]) -> Verdict:
    """Plays one run in `folder`, which must be new, and audits it. Processes are ended whatever happens."""
    scene = Scene(folder, wish.seed)
    try:
        killer = Killer(scene, random.Random(wish.seed), wish.kills_per_minute)
        scene.start_clients(wish.clients, wish.open_jobs)
        deadline_s, said_s = monotonic_s() + wish.seconds, monotonic_s()
        while monotonic_s() < deadline_s:
            killer.tick()
            _step(scene)
            if monotonic_s() - said_s > 30:
                said_s = monotonic_s()
                say(f"{deadline_s - said_s:.0f} s to go, {killer.kills.total()} kills")
        assert scene.clients is not None
        scene.clients.process.terminate()
        violations = [*_tend_until(scene, lambda: _clients_ended(scene), CLIENTS_END_S, "the clients end")]
        violations += _tend_until(scene, lambda: _is_quiet(scene), DRAIN_S, "everything comes to its end")
        violations += _outside_broken(scene)
        client = redis.Redis.from_url(scene.store.url)
        evidence = gather(folder, client, scene.apis[0], killer.dead_horses, scene.living_orphans())
        return Verdict(evidence, killer.kills, [*violations, *audit(evidence)])
    finally:
        scene.close()


def _step(scene: Scene) -> None:
    scene.tend()
    threading.Event().wait(STEP_S)


def _clients_ended(scene: Scene) -> bool:
    return scene.clients is not None and scene.clients.process.poll() is not None


def _outside_broken(scene: Scene) -> list[Violation]:
    """The harness's own clients and recorder must not have died: what they did not see proves nothing."""
    ends = {"clients": scene.clients, "recorder": scene.recorder}
    codes = {name: process.process.poll() for name, process in ends.items() if process is not None}
    broken = [name for name, code in codes.items() if code not in ((0,) if name == "clients" else (None,))]
    return [Violation("the outside world works", name, f"exit code {codes[name]}") for name in broken]


def _tend_until(scene: Scene, condition: Callable[[], bool], within_s: float, what: str) -> list[Violation]:
    deadline_s = monotonic_s() + within_s
    while not condition():
        if monotonic_s() > deadline_s:
            return [Violation(what, "the run", f"not within {within_s:.0f} s")]
        _step(scene)
    return []


def _is_quiet(scene: Scene) -> bool:
    """Whether all is running again, no job is active, nothing waits to be delivered, and no orphan lives."""
    if not scene.store_answers or scene.living_orphans():
        return False
    store: Any = redis.Redis.from_url(scene.store.url)
    lists = (f"rq:queue:{QUEUE}", f"rq:queue:{QUEUE}:intermediate", f"{PREFIX}:active", f"{PREFIX}:out:hosts")
    if store.exists(*lists) or not all(part.is_running for part in scene.parts.values()):
        return False
    # One that has just been started again does not listen yet, and the audit asks it.
    return all(accepts(int(api.rpartition(":")[2])) for api in scene.apis)
