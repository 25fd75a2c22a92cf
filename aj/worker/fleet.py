"""The worker process: keeps its children running, one for each RQ worker, the deliverer and the sweep.

Holds processes and signals only; what a child does stands in `child`. A child that dies is started again, with
growing pauses. SIGTERM or SIGINT asks the children to stop, and they finish what they do.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from aj import logs
from aj.clock import monotonic_s
from aj.errors import SettingsError
from aj.local.embedded import ensure_store
from aj.local.signals import Signals
from aj.processes import ends_with_parent
from aj.settings import Settings
from aj.store import connect, refuse_unfit
from aj.worker.trial import EXIT_SETTINGS, introduction, try_to_load

log = logging.getLogger("aj.worker")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
HEALTHY_AFTER_S = 10.0


@dataclass(slots=True)
class Child:
    """One kind of child and its process, if it runs; `pause_s` is the wait before it is started again."""

    arguments: list[str]
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    start_at_s: float = field(default_factory=monotonic_s)
    pause_s: float = FIRST_PAUSE_S

    def start_if_due(self) -> None:
        if self.process is None and monotonic_s() >= self.start_at_s:
            self.started_s = monotonic_s()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "aj.worker.child", *self.arguments],
                # The child finds modules where we do, in whatever folder we were started.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                preexec_fn=ends_with_parent(),  # noqa: PLW1509 - no threads here
            )

    def take_death(self) -> int | None:
        """The exit code if the process has just ended, and then the time at which it is started again."""
        if self.process is None or self.process.poll() is None:
            return None
        code, self.process = self.process.returncode, None
        lived_s = monotonic_s() - self.started_s
        self.pause_s = FIRST_PAUSE_S if lived_s > HEALTHY_AFTER_S else min(LONGEST_PAUSE_S, self.pause_s * 2)
        self.start_at_s = monotonic_s() + self.pause_s
        return code

    @property
    def title(self) -> str:
        titles = {"deliveries": "the deliverer", "sweep": "the sweep"}
        return titles.get(self.arguments[0], f"the RQ worker of {self.arguments[-1]}")

    @property
    def runs_jobs(self) -> bool:
        return self.arguments[0] == "jobs"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, sig: signal.Signals) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(sig)


def main(arguments: Sequence[str]) -> int:
    """Runs the worker process until a signal ends it; gives the exit code."""
    parser = argparse.ArgumentParser(prog="worker.py", description="Runs jobs and delivers webhooks.")
    parser.add_argument("--only", choices=("jobs", "deliveries"), help="do one of the two")
    only = parser.parse_args(arguments).only
    try:
        asked = Settings.from_env(os.environ)
        logs.set_up(asked.log)
        settings = ensure_store(asked, os.environ)
        # What would stop every child stops us, with one line instead of one from each.
        code, names = try_to_load(settings)
        if code:
            return code
        refuse_unfit(connect(settings.redis_url))
    except SettingsError as error:
        print(f"aj: {error}", file=sys.stderr)
        return EXIT_SETTINGS
    log.info("%s", introduction(asked, names))
    children = [Child(["sweep"])]
    if only != "jobs":
        children.append(Child(["deliveries"]))
    if only != "deliveries":
        children += [Child(["jobs", queue]) for queue in settings.queues for _ in range(settings.workers)]
    with Signals(signal.SIGTERM, signal.SIGINT) as signals:
        code = _keep_running(children, signals)
        return max(code, _stop(children, signals))


def _keep_running(children: Sequence[Child], signals: Signals) -> int:
    """Returns 0 when a signal comes, or a child's exit code where starting it again cannot help."""
    while True:
        for child in children:
            code = child.take_death()
            if code == EXIT_SETTINGS:
                return code
            if code is not None:
                log.error("%s %s; started again in %.1f s", child.title, _how_it_ended(code), child.pause_s)
            child.start_if_due()
        if signals.wait(0.2):
            return 0


def _how_it_ended(code: int) -> str:
    return f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"


def _stop(children: Sequence[Child], signals: Signals) -> int:
    """Stops the children and waits for them; a second signal ends them at once, which gives 1.

    Those that run jobs stop first, so that the webhook of the last job still goes out.
    """
    log.info("stopping: running jobs come to their end first")
    workers = [child for child in children if child.runs_jobs]
    hurried = False
    for group in (workers, children):
        for child in group:
            child.signal(signal.SIGTERM)
        while any(child.is_running for child in group):
            if signals.wait(0.05):
                hurried = True
                log.warning("stopping at once: running jobs are lost")
                for child in children:
                    child.signal(signal.SIGKILL)
    return int(hurried)
