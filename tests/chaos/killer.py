"""Whom to kill, and when: seeded choices, SIGKILL only. Remembers whom it killed and starts nothing."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from aj.clock import monotonic_s
from tests.chaos.scene import QUEUE, Scene
from tests.support.inside import is_alive
from tests.support.waiting import wait_until

STORE_AWAY_S = 2.0
FREEZE = "frozen store"
TRIES = 20
HORSE_WAIT_S, HORSE_AGE_S = 0.5, 0.1


def children(pid: int) -> list[int]:
    """Pids of the direct children (Linux); none where the process is gone."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def last_word(pid: int) -> str:
    """The last word of the command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0")[2].decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def state_of(pid: int) -> str:
    """The letter of the process's state; Z where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def freeze(pid: int) -> None:
    """Stops a process and waits until it stands, so that it forks nobody any more."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) in "TZ", what=f"process {pid} to stand")


class Killer:
    """Kills `per_minute` processes a minute, at moments and of kinds that `chance` chooses; some it only freezes.

    `dead_horses` are the work-horses that it killed, or whose worker it killed.
    """

    def __init__(self, scene: Scene, chance: random.Random, per_minute: float) -> None:
        self._scene, self._chance, self._per_second = scene, chance, per_minute / 60
        self._next_s = monotonic_s() + chance.expovariate(self._per_second)
        self.kills: Counter[str] = Counter()
        self.dead_horses: set[int] = set()
        # How often each is chosen.
        self._kinds: dict[str, tuple[int, Callable[[], bool]]] = {
            "work-horse": (34, self._work_horse),
            "RQ worker": (12, self._rq_worker),
            "deliverer": (8, lambda: self._fleet_child("deliveries")),
            "sweep": (8, lambda: self._fleet_child("sweep")),
            "worker parent": (5, self._worker_parent),
            "API worker": (14, lambda: self._child_of("api 0", "api 1")),
            "API master": (5, lambda: self._master("api 0", "api 1")),
            "hooksink worker": (6, lambda: self._child_of("hooksink")),
            "hooksink master": (3, lambda: self._master("hooksink")),
            "store": (5, self._store),
            FREEZE: (3, self._freeze_store),
        }

    def tick(self) -> None:
        """Kills somebody, if it is time."""
        if monotonic_s() < self._next_s:
            return
        self._next_s = max(self._next_s, monotonic_s() - 5) + self._chance.expovariate(self._per_second)
        for name in self._choices():
            if self._kinds[name][1]():
                self.kills[name] += 1
                return

    def _choices(self) -> list[str]:
        """Kinds to try, until one of them is there to be killed: those that were never killed come first."""
        names = list(self._kinds)
        spared = [name for name in names if name not in self.kills]
        self._chance.shuffle(spared)
        return spared + self._chance.choices(names, [self._kinds[each][0] for each in names], k=TRIES)

    def _pick(self, pids: list[int]) -> int | None:
        living = [pid for pid in pids if is_alive(pid)]
        return self._chance.choice(living) if living else None

    def _kill(self, pid: int | None) -> bool:
        if pid is None:
            return False
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _masters(self, *names: str) -> list[int]:
        return [part.process.pid for name in names if (part := self._scene.parts[name]).is_running]

    def _master(self, *names: str) -> bool:
        return self._kill(self._pick(self._masters(*names)))

    def _child_of(self, *names: str) -> bool:
        return self._kill(self._pick([child for master in self._masters(*names) for child in children(master)]))

    def _fleet_children(self, word: str) -> list[int]:
        fleets = self._masters("fleet 0", "fleet 1")
        return [child for fleet in fleets for child in children(fleet) if last_word(child) == word]

    def _fleet_child(self, word: str) -> bool:
        return self._kill(self._pick(self._fleet_children(word)))

    def _work_horse(self) -> bool:
        """Most live for a moment only: one is waited for, and killed at some point of its life."""
        deadline_s, age_s = monotonic_s() + HORSE_WAIT_S, self._chance.uniform(0, HORSE_AGE_S)
        workers = self._fleet_children(QUEUE)
        while not (horses := [horse for worker in workers for horse in children(worker)]):
            if monotonic_s() > deadline_s:
                return False
            threading.Event().wait(0.002)
        threading.Event().wait(age_s)
        horse = self._pick(horses)
        if horse is None:
            return False
        self.dead_horses.add(horse)
        return self._kill(horse)

    def _rq_worker(self) -> bool:
        """Frozen first, so that it forks nobody between the look at its children and its death."""
        worker = self._pick(self._fleet_children(QUEUE))
        if worker is None:
            return False
        freeze(worker)
        self.dead_horses.update(children(worker))
        return self._kill(worker)

    def _worker_parent(self) -> bool:
        """Its children finish what they do and end by themselves."""
        fleet = self._pick(self._masters("fleet 0", "fleet 1"))
        if fleet is None:
            return False
        freeze(fleet)
        self._scene.orphans.update(children(fleet))
        return self._kill(fleet)

    def _store(self) -> bool:
        if not self._scene.store.is_alive():
            return False
        self._scene.kill_store(self._chance.uniform(0, STORE_AWAY_S))
        return True

    def _freeze_store(self) -> bool:
        if not self._scene.store_answers:
            return False
        self._scene.freeze_store(self._chance.uniform(0, STORE_AWAY_S))
        return True
