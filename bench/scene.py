"""One run of the bench: its store, the web servers of all stacks, and what the sections do with them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial

from aj.clock import monotonic_s
from aj.local.waiting import pause
from bench.load import Driven, Wish
from bench.processes import ROOT, BenchError, Program, Start, accepts, free_port, running
from bench.samples import Figures
from bench.stacks import SUBMIT, Place, Stack, Worker
from bench.store import Store, Usage
from bench.wire import Client, request

JOB_S, AGAIN_S = 30.0, 3.0
# More workers than processors run no more jobs.
CORES = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: `rounds` of `seconds` for each row; `sizes` are numbers of stored jobs."""

    rounds: int
    seconds: float
    sizes: tuple[int, ...]

    def count(self, per_s: float) -> int:
        """How many of something that happens `per_s` times a second are worth measuring."""
        return max(5, int(per_s * self.seconds))


@dataclass(slots=True)
class Site:
    """The web server of a stack."""

    stack: Stack
    port: int
    program: Program


@dataclass(slots=True)
class Scene:
    """What every section is given. No round begins that would not end by `until_s`, but the first."""

    plan: Plan
    store: Store
    place: Place
    say: Callable[[str], None]
    sites: dict[str, Site] = field(default_factory=dict)
    until_s: float = math.inf

    def rounds(self) -> Iterator[int]:
        """The numbers of the rounds: as many as are planned, fewer where the machine is too busy for them."""
        began_s = monotonic_s()
        for number in range(self.plan.rounds):
            now_s = monotonic_s()
            if number and now_s + (now_s - began_s) / number > self.until_s:
                self.say(f"({number} of {self.plan.rounds} rounds, since they take longer than usual)")
                return
            yield number

    def drive(self, site: Site, wanted: bytes, seconds: float, most: int = 0) -> Driven:
        """Load from a process of its own. Raises: BenchError: a reply was no 2xx."""
        wish = json.dumps(asdict(Wish(site.port, wanted.decode(), seconds=seconds, most=most)))
        done = subprocess.run(
            [sys.executable, "-m", "bench.load", wish],
            cwd=ROOT,
            env=self.place.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BenchError(f"the load generator ended: {done.stderr[-500:]}")
        driven = Driven(**json.loads(done.stdout))
        if driven.errors or not driven.requests:
            wrong = f"{driven.errors} errors beside {driven.requests} replies"
            raise BenchError(f"{site.stack.name}: {wrong} {driven.first_error}")
        return driven

    def loaded(self, site: Site, wanted: bytes) -> Figures:
        """A request over and over: how quick it is, and what it costs web processes, store and the generator.

        A store that was busy for long may count as away for a moment, so one failure is not the end.
        """
        try:
            return self._loaded(site, wanted)
        except BenchError as error:
            self.say(f"(once more, after {error})")
            pause(AGAIN_S)
            return self._loaded(site, wanted)

    def _loaded(self, site: Site, wanted: bytes) -> Figures:
        before, web_s = self.store.usage(), site.program.cpu_s()
        driven = self.drive(site, wanted, self.plan.seconds)
        after, count = self.store.usage(), driven.requests
        return {
            "per_s": count / driven.seconds,
            "load_us": driven.cpu_s / count * 1e6,
            "p50_ms": driven.p50_ms,
            "p99_ms": driven.p99_ms,
            "cpu_us": each_us(web_s, site.program.cpu_s(), count),
            **used(before, after, count),
        }

    def executed(self) -> int:
        """How many jobs have run since the last `clear`, whichever stack's."""
        return self.place.marks.stat().st_size

    def clear(self) -> None:
        """An empty store and no job executed."""
        self.store.clear()
        self.place.marks.write_bytes(b"")

    def executing(self, site: Site, worker: Worker, processes: int = 1) -> Figures:
        """Jobs that wait already, run by so many workers: how many a second, and what each costs, once all are warm."""
        most = self.plan.count(worker.jobs_per_s * min(processes, CORES))
        # The first ones run jobs while the last ones start.
        warm = most // 10 + 1 + worker.jobs_per_s * (processes - 1)
        self.place.marks.write_bytes(b"")
        self.drive(site, SUBMIT, 0, most + warm)
        with ExitStack() as started:
            programs = [started.enter_context(self.working(worker)) for _ in range(processes)]
            for program in programs:
                program.wait_for(
                    lambda: self.executed() >= most // 10 and (processes == 1 or self._workers() >= processes),
                    f"{worker.name}: {processes} have begun to run {most + warm} jobs",
                )
            began_s, first = monotonic_s(), self.executed()
            before, cpu_s = self.store.usage(), _cpu_s(programs)
            while (passed_s := monotonic_s() - began_s) < self.plan.seconds and self.executed() < most + warm:
                pause(0.002)
            count, after, ended_cpu_s = self.executed() - first, self.store.usage(), _cpu_s(programs)
            for program in programs:  # all at the same time
                program.ask_to_stop()
        if not count:
            raise BenchError(f"{worker.name}: no job run in {passed_s:.1f} s")
        return {
            "per_s": count / passed_s,
            "cpu_us": each_us(cpu_s, ended_cpu_s, count),
            **used(before, after, count),
        }

    def _workers(self) -> int:
        """How many workers of RQ's kind, as ours are, have started."""
        return int(self.store.client.scard("rq:workers"))

    def program(self, start: Start) -> AbstractContextManager[Program]:
        """A program as long as the block runs."""
        return running(start, self.place.folder / "programs.log")

    def working(self, worker: Worker) -> AbstractContextManager[Program]:
        """A worker as long as the block runs."""
        return self.program(worker.start)

    def one_job(self, site: Site) -> str:
        """Submits a job while a worker runs, waits for its end and gives its id. Raises: BenchError."""
        client = Client(site.port)
        job_id: str = json.loads(client.ask(SUBMIT).body)["job_id"]
        until_s = monotonic_s() + JOB_S
        while site.stack.ended not in client.ask(request("GET", f"/jobs/{job_id}")).body:
            if monotonic_s() > until_s:
                raise BenchError(f"{site.stack.name}: a job has not ended within {JOB_S:g} s")
            pause(0.005)
        client.close()
        return job_id

    @contextmanager
    def serving(self, stacks: Sequence[Stack]) -> Iterator[list[Site]]:
        """Starts the web servers of some stacks, at the same time, and stops them at the end."""
        with ExitStack() as started:
            sites = []
            for stack in stacks:
                port = free_port()
                log = self.place.folder / f"{stack.name}.log"
                sites.append(Site(stack, port, started.enter_context(running(stack.web_at(port), log))))
            for site in sites:
                site.program.wait_for(partial(accepts, site.port), f"{site.stack.name} listens")
                self.drive(site, SUBMIT, 0, 64)  # all of its processes have loaded the app
            yield sites


def _cpu_s(programs: Iterable[Program]) -> float | None:
    """Processor time of all of them so far; None where there is no figure."""
    taken = [each.cpu_s() for each in programs]
    return None if None in taken else sum(each for each in taken if each is not None)


def used(before: Usage, after: Usage, count: int) -> Figures:
    """What the store has done for each of `count`."""
    return {
        "reads": (after.reads - before.reads) / count,
        "commands": (after.commands - before.commands) / count,
        "store_us": each_us(before.cpu_s, after.cpu_s, count),
    }


def each_us(before_s: float | None, after_s: float | None, count: int) -> float | None:
    """Processor time for each of `count`, in microseconds; None where there is no figure."""
    return None if before_s is None or after_s is None else (after_s - before_s) / count * 1e6
