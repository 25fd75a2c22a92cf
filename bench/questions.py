"""What the bench can be asked: for each question what measures it, and how its table looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.samples import Samples
from bench.scene import Scene
from bench.sections.execute import execute
from bench.sections.growth import growth, memory
from bench.sections.latency import latency
from bench.sections.scale import scale
from bench.sections.web import status, submit
from bench.sections.webhooks import webhooks
from bench.stacks import RQ


@dataclass(frozen=True, slots=True)
class Column:
    """A figure and its heading.

    `is_ratio` shows it as a multiple of the reference's, `is_steady` without its spread.
    """

    figure: str
    title: str
    is_ratio: bool = False
    is_steady: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One table, in the quick set in about `usual_s` seconds.

    Ratios are to the row `reference`, or where that is empty, to the first of each kind of rows: what stands before
    the comma in a row's name is its kind.
    """

    name: str
    title: str
    rows: str
    run: Callable[[Scene], Samples]
    columns: tuple[Column, ...]
    usual_s: int
    reference: str = ""

    def reference_of(self, row: str, rows: Iterable[str]) -> str:
        return self.reference or next(each for each in rows if each.partition(", ")[0] == row.partition(", ")[0])


RATE = Column("per_s", "a second")
P50, P99 = Column("p50_ms", "p50, ms"), Column("p99_ms", "p99, ms")
READS, COMMANDS = Column("reads", "store reads", is_steady=True), Column("commands", "store commands", is_steady=True)
STORE_CPU = Column("store_us", "store CPU, µs", is_steady=True)
LOAD_CPU = Column("load_us", "generator CPU, µs", is_steady=True)


def _times(figure: str) -> Column:
    return Column(figure, "of RQ's", is_ratio=True)


def _web(name: str, title: str, run: Callable[[Scene], Samples], usual_s: int) -> Question:
    cpu = Column("cpu_us", "web CPU, µs")
    columns = (RATE, _times("per_s"), P50, P99, cpu, _times("cpu_us"), READS, COMMANDS, STORE_CPU, LOAD_CPU)
    return Question(name, title, "stack", run, columns, usual_s, RQ)


QUESTIONS = {
    each.name: each
    for each in (
        _web("submit", "POST /jobs by 16 connections", submit, 10),
        _web("status", "GET of an ended job by 16 connections", status, 22),
        Question(
            "execute",
            "running jobs that wait, by one worker process",
            "worker",
            execute,
            (
                *(RATE, _times("per_s"), Column("cpu_us", "worker CPU, µs"), _times("cpu_us")),
                *(READS, COMMANDS, STORE_CPU),
            ),
            50,
            "RQ Worker, a fork per job",
        ),
        Question(
            "scale",
            "running jobs that wait, by several worker processes of aj",
            "store, worker processes",
            scale,
            (
                *(RATE, Column("per_s", "of one's", is_ratio=True)),
                *(Column("cpu_us", "worker CPU, µs"), Column("cpu_us", "of one's", is_ratio=True), STORE_CPU),
            ),
            24,
        ),
        Question(
            "latency",
            "from POST to the caller knowing the end, idle",
            "worker, caller",
            latency,
            (P50, _times("p50_ms"), P99),
            40,
            "RQ Worker, a fork per job, asked each ms",
        ),
        Question(
            "growth",
            "aj with ended jobs in the store",
            "work, ended jobs",
            growth,
            (
                *(RATE, Column("per_s", "of the first's", is_ratio=True)),
                *(Column("cpu_us", "CPU, µs"), Column("cpu_us", "of the first's", is_ratio=True), STORE_CPU),
            ),
            60,
        ),
        Question("memory", "what a job of aj takes in the store", "job", memory, (Column("bytes", "bytes"),), 8),
        Question(
            "webhooks",
            "signed webhooks of one deliverer",
            "to",
            webhooks,
            (
                *(RATE, Column("cpu_us", "deliverer CPU, µs")),
                *(Column("p50_ms", "end to receipt p50, ms"), Column("p99_ms", "p99, ms")),
            ),
            22,
        ),
    )
}
