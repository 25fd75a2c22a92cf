"""What is measured: a store, an API under gunicorn, and for each series a fleet of workers. All ends with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from aj.local.embedded import start_server
from tests.pace.series import ALL, Series
from tests.support.processes import ROOT, Running, running_api
from tests.support.waiting import wait_until

START_S, STOP_S = 300.0, 10.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The address of the API, and the store behind it."""

    url: str
    store: redis.Redis

    def waiting(self, series: Series) -> int:
        """How many jobs stand in the queue."""
        length: Any = self.store.llen(f"rq:queue:{series.queue}")
        return int(length)

    def is_idle(self, series: Series) -> bool:
        """Whether no job waits, is taken or runs."""
        queue = f"rq:queue:{series.queue}"
        return self.store.exists(queue, f"{queue}:intermediate", f"rq:wip:{series.queue}") == 0

    def has_workers(self, series: Series) -> bool:
        return self.store.scard(f"rq:workers:{series.queue}") == series.workers


@contextmanager
def played_on(folder: Path, played: Sequence[Series]) -> Iterator[Scene]:
    """Starts everything in `folder`, and gives it when each worker is ready."""
    with start_server(folder / "store") as server, ExitStack() as stack:
        env = {
            "AJ_REDIS_URL": server.url,
            "AJ_TASKS": "tests.pace.tasks",
            "AJ_QUEUES": ",".join(each.queue for each in ALL),
        }
        _, url = stack.enter_context(running_api(env, folder))
        scene = Scene(url, redis.Redis.from_url(server.url))
        fleets: list[Running] = []
        stack.callback(_stop, fleets)
        for each in played:
            own = {**env, "AJ_QUEUES": each.queue, "AJ_WORKERS": str(each.workers)}
            command = [sys.executable, "worker.py", "--only", "jobs"]
            fleets.append(Running(command, own, folder / f"{each.kind.task}.log", ROOT))
            # One fleet after the other, since a hundred processes that start are a load that others would feel.
            wait_until(partial(scene.has_workers, each), START_S, f"{each.workers} workers of {each.queue}")
        yield scene


def _stop(fleets: Sequence[Running]) -> None:
    """Idle workers leave at once; a second signal ends those whose jobs would go on for minutes."""
    try:
        for _ in range(2):
            for fleet in fleets:
                fleet.process.terminate()
            with suppress(AssertionError):
                wait_until(lambda: all(fleet.process.poll() is not None for fleet in fleets), STOP_S)
                return
    finally:
        for fleet in fleets:
            fleet.kill()
