"""`GET /metrics`: the figures of the deployment in the format of Prometheus. Renders, and counts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from werkzeug.exceptions import NotFound

from aj.answers import UNCACHED, Asked, Reply
from aj.errors import StoreUnavailable
from aj.job import CallbackState, ErrorType, Status
from aj.store import BOUNDS_S, Reading

try:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector
except ImportError:  # an extra
    Collector = object  # type: ignore[assignment,misc]

# What is there from the start, so that its first increase can be seen.
_ALWAYS = (
    ("submissions", "accepted"),
    ("submissions", "replayed"),
    *(("deliveries", state) for state in CallbackState if state is not CallbackState.PENDING),
)
_ENDS = (Status.SUCCEEDED, *ErrorType)


def metrics(asked: Asked) -> Reply:
    """The figures; of a store that is away only that it is."""
    if Collector is object:
        raise NotFound("This page needs an extra: pip install 'flask-aj[metrics]'.")
    api = asked.api
    try:
        reading = api.figures.read(api.settings.queues)
    except StoreUnavailable:
        reading = None
    encode, media_type = choose_encoder(asked.request.headers.get("Accept", ""))
    registry = CollectorRegistry()
    registry.register(Exposition(reading, api.task_names))
    return Reply(200, {"Content-Type": media_type, **UNCACHED}, encode(registry))


class Exposition(Collector):
    """One reading as Prometheus sees it; None where the store could not be asked."""

    def __init__(self, reading: Reading | None, tasks: Iterable[str]) -> None:
        self._reading = reading
        self._counts = {} if reading is None else _with_zeros(reading, tasks)

    def collect(self) -> Iterator[Metric]:
        up = self._reading is not None
        yield GaugeMetricFamily("aj_store_up", "Whether the store answers; without it nothing else is told.", value=up)
        if self._reading is not None:
            yield from self._counters()
            yield from self._histograms()
            yield from _gauges(self._reading)

    def _counters(self) -> Iterator[Metric]:
        for what, name, labels, meaning in (
            ("submissions", "aj_submissions", ["outcome"], "Submissions, by what became of them."),
            (
                "ended",
                "aj_jobs_ended",
                ["outcome", "task"],
                "Jobs that ended: `succeeded`, or the type of their error.",
            ),
            ("retried", "aj_job_retries", ["task"], "Attempts that failed and were followed by another."),
            ("attempts", "aj_delivery_attempts", ["answer"], "Attempts to deliver, by the class of the answer."),
            ("deliveries", "aj_deliveries_ended", ["state"], "Deliveries that came to their end."),
        ):
            family = CounterMetricFamily(name, meaning, labels=labels)
            for (kind, *values), times in self._counts.items():
                if kind == what:
                    family.add_metric(values, times)
            yield family

    def _histograms(self) -> Iterator[Metric]:
        for what, name, meaning in (
            ("wait", "aj_job_wait_seconds", "How long jobs waited in their queue before an attempt began."),
            (
                "run",
                "aj_job_run_seconds",
                "How long the last attempts of jobs ran; lost and cancelled ones are left out.",
            ),
        ):
            family = HistogramMetricFamily(name, meaning, labels=["task"])
            for task in sorted({words[2] for words in self._counts if words[0] == what}):
                below, buckets = 0, []
                for bound, word in (*((each, f"{each * 1000:g}") for each in BOUNDS_S), ("+Inf", "inf")):
                    below += self._counts.get((what, word, task), 0)
                    buckets.append((str(bound), below))
                family.add_metric([task], buckets, self._counts[what, "sum", task] / 1000)
            yield family


def _with_zeros(reading: Reading, tasks: Iterable[str]) -> dict[tuple[str, ...], int]:
    counts: dict[tuple[str, ...], int] = dict.fromkeys(_ALWAYS, 0)
    for task in tasks:
        counts.update({("ended", end, task): 0 for end in _ENDS})
        counts.update({("wait", "sum", task): 0, ("run", "sum", task): 0, ("retried", task): 0})
    return counts | reading.counts


def _gauges(reading: Reading) -> Iterator[Metric]:
    for name, value, meaning in (
        ("aj_suspended", reading.is_suspended, "Whether RQ's workers are suspended and take no job."),
        ("aj_jobs_running", reading.running, "Jobs that run."),
        ("aj_jobs_delayed", reading.delayed, "Jobs that wait for the time of their next attempt."),
        ("aj_deliveries_pending", reading.pending, "Webhooks that are owed."),
        ("aj_deliveries_oldest_pending_seconds", reading.oldest_pending_s or 0.0, "How long the oldest is owed."),
    ):
        yield GaugeMetricFamily(name, meaning, value=value)
    for name, attribute, meaning in (
        ("aj_queue_jobs", "jobs", "Jobs in the queue."),
        ("aj_queue_oldest_seconds", "oldest_s", "How long the first one in the queue has waited."),
        ("aj_workers", "workers", "RQ workers of this deployment that live."),
    ):
        family = GaugeMetricFamily(name, meaning, labels=["queue"])
        for queue in reading.queues:
            family.add_metric([queue.name], getattr(queue, attribute) or 0)
        yield family
