"""From the submission of a job to its end being known by the caller, on a machine that does nothing else."""

from __future__ import annotations

import random
from functools import partial

from aj.clock import monotonic_s
from aj.local.waiting import pause
from bench.processes import BenchError
from bench.samples import Figures, Samples, by_turns, percentile
from bench.scene import JOB_S, Scene, Site
from bench.stacks import AJ, BODY, SUBMIT, Worker
from bench.wire import Client, request

WAITED = "aj, Prefer: wait"
POLLED = "aj, asked each ms"
JOBS_PER_S = 70


def latency(scene: Scene) -> Samples:
    """One job at a time, each a moment after the last, at random: no loop of anybody falls in step."""
    took: dict[str, list[float]] = {}

    def measure(name: str, site: Site, worker: Worker) -> Figures:
        times = _times_ms(scene, site, worker, name == WAITED)
        took.setdefault(name, []).extend(times)
        return {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}

    rows = [(name, site, worker) for site in scene.sites.values() for name, worker in _rows(site)]
    samples = by_turns(scene.rounds(), {name: partial(measure, name, site, worker) for name, site, worker in rows})
    samples.took_ms = {name: took[name] for name in samples.rows}
    return samples


def _rows(site: Site) -> list[tuple[str, Worker]]:
    workers = site.stack.workers
    if site.stack.name == AJ:
        return [(WAITED, workers[0]), (POLLED, workers[0])]
    return [(f"{worker.name}, asked each ms", worker) for worker in workers]


def _times_ms(scene: Scene, site: Site, worker: Worker, waits: bool) -> list[float]:
    scene.clear()
    client, times = Client(site.port), []
    with scene.working(worker):
        scene.one_job(site)
        for _ in range(scene.plan.count(JOBS_PER_S)):
            pause(random.uniform(0.004, 0.012))  # noqa: S311 (nothing secret hangs on it)
            began_s = monotonic_s()
            _wait(client) if waits else _poll(client, site)
            times.append(1000 * (monotonic_s() - began_s))
    client.close()
    return times


def _wait(client: Client) -> None:
    if client.ask(request("POST", "/jobs", BODY, "Prefer: wait=30")).status != 200:
        raise BenchError("aj did not wait for the end")


def _poll(client: Client, site: Site) -> None:
    job_id = client.ask(SUBMIT).body.split(b'"job_id"', 1)[1].split(b'"', 2)[1].decode()
    wanted, until_s = request("GET", f"/jobs/{job_id}"), monotonic_s() + JOB_S
    while site.stack.ended not in client.ask(wanted).body:
        if monotonic_s() > until_s:
            raise BenchError(f"{site.stack.name}: a job has not ended within {JOB_S:g} s")
        pause(0.001)
