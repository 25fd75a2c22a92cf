"""Webhooks of one deliverer of `aj` to a receiver that answers at once."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from aj.clock import monotonic_s
from aj.local.waiting import pause, wait_for
from aj.store import Keys
from bench.processes import ROOT, WAIT_S, BenchError, Program, Start, accepts, free_port, running
from bench.samples import Figures, Samples, by_turns, percentile
from bench.scene import Scene, each_us
from bench.stacks import AJ
from bench.wire import Client, request

JOBS_PER_S, HOOKS_PER_S = 50, 800
# Not a secret of anybody: it signs what this machine sends to itself.
SECRETS = {"AJ_WEBHOOK_SECRETS": "whsec_YWotYmVuY2gtYWotYmVuY2gtYWotYmVuY2g="}


@dataclass(frozen=True, slots=True)
class Receipts:
    """What the receiver has noted."""

    port: int
    file: Path

    def lines(self) -> list[bytes]:
        return self.file.read_bytes().splitlines() if self.file.exists() else []

    def are(self, count: int) -> bool:
        return len(self.lines()) >= count

    def forget(self) -> None:
        self.file.write_bytes(b"")


def webhooks(scene: Scene) -> Samples:
    """Many that are due already, for the rate; one at a time, for the time from the end of a job to the receipt."""
    if AJ not in scene.sites:
        return Samples()
    worker = scene.sites[AJ].stack.workers[0].start.plus(SECRETS)
    scene.clear()
    with _receiving(scene) as receipts, scene.program(worker.plus({}, "--only", "jobs")):
        scene.one_job(scene.sites[AJ])
        return by_turns(
            scene.rounds(),
            {"one receiver": lambda: _measure(scene, receipts, worker.plus({}, "--only", "deliveries"))},
        )


@contextmanager
def _receiving(scene: Scene) -> Iterator[Receipts]:
    receipts = Receipts(free_port(), scene.place.folder / "receipts")
    command = (sys.executable, "-m", "bench.receiver", str(receipts.port), str(receipts.file))
    with running(scene.place.start(command, ROOT, {}), scene.place.folder / "receiver.log") as program:
        program.wait_for(lambda: accepts(receipts.port), "the receiver listens")
        yield receipts


def _submission(receipts: Receipts) -> bytes:
    return request("POST", "/jobs", json.dumps({"n": 5, "callback_url": f"http://127.0.0.1:{receipts.port}/"}))


def _measure(scene: Scene, receipts: Receipts, deliverer: Start) -> Figures:
    """Webhooks of jobs that have ended before the deliverer starts, then of single ones."""
    count = scene.plan.count(HOOKS_PER_S)
    warm = count // 10 + 1
    client, keys = scene.store.client, Keys("aj")
    owed_before = client.zcard(keys.pending)
    receipts.forget()
    scene.drive(scene.sites[AJ], _submission(receipts), 0, count + warm)
    if not wait_for(lambda: client.zcard(keys.pending) - owed_before >= count + warm, WAIT_S):
        raise BenchError(f"{count + warm} jobs have not ended within {WAIT_S:g} s")
    with scene.program(deliverer) as program:
        program.wait_for(partial(receipts.are, warm), "webhooks arrive")
        began_s, cpu_s, first = monotonic_s(), program.cpu_s(), len(receipts.lines())
        while (passed_s := monotonic_s() - began_s) < scene.plan.seconds and not receipts.are(count + warm):
            pause(0.01)
        done, ended_cpu_s = len(receipts.lines()) - first, program.cpu_s()
        program.wait_for(partial(receipts.are, count + warm), "all webhooks arrive")
        if not done or not all(line.split(b" ", 2)[1] == b"1" for line in receipts.lines()):
            raise BenchError(f"{done} webhooks in {passed_s:.1f} s, or one without a signature")
        times = _times_ms(scene, receipts, program)
    return {
        "per_s": done / passed_s,
        "cpu_us": each_us(cpu_s, ended_cpu_s, done),
        "p50_ms": percentile(times, 0.5),
        "p99_ms": percentile(times, 0.99),
    }


def _times_ms(scene: Scene, receipts: Receipts, deliverer: Program) -> list[float]:
    """From `ended_at` in the body to the receipt, on a machine that does nothing else; both in whole ms."""
    receipts.forget()
    wanted, client = _submission(receipts), Client(scene.sites[AJ].port)
    for number in range(1, scene.plan.count(JOBS_PER_S) + 1):
        client.ask(wanted)
        deliverer.wait_for(partial(receipts.are, number), "a webhook arrives")
        pause(random.uniform(0.004, 0.012))  # noqa: S311 (nothing secret hangs on it)
    client.close()
    times = []
    for line in receipts.lines():
        came_ms, _, body = line.split(b" ", 2)
        ended = datetime.fromisoformat(json.loads(body)["ended_at"])
        times.append(int(came_ms) - ended.timestamp() * 1000)
    return times
