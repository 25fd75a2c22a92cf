"""`python -m aj.worker.child jobs QUEUE`, `… deliveries` or `… sweep`: one child of the worker process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from aj.processes import Stop, die_at_interrupt

if __name__ == "__main__":
    die_at_interrupt()  # before the rest is loaded, which takes a moment

from aj import logs
from aj.deliver import Deliver
from aj.egress import Egress, host_of
from aj.errors import SettingsError
from aj.local.embedded import ensure_store
from aj.local.watch import watch_store
from aj.settings import Settings
from aj.store import Jobs, Keys, Outbox, Recovery, connect
from aj.version import USER_AGENT
from aj.worker.rq_worker import Worker
from aj.worker.surroundings import load_tasks
from aj.worker.sweep import Sweep
from aj.worker.trial import EXIT_SETTINGS


def main(arguments: Sequence[str]) -> int:
    """Works until SIGTERM or SIGINT; gives the exit code."""
    try:
        asked = Settings.from_env(os.environ)
        logs.set_up(asked.log)
        settings = ensure_store(asked, os.environ)
        client, keys = connect(settings.redis_url, for_worker=True), Keys(settings.prefix)
        if arguments[0] == "deliveries":
            egress = Egress(settings.callback_allow, settings.callback_timeout_s, USER_AGENT)
            Deliver(settings, Outbox(client, keys), egress)(_stop_event())
            return 0
        registry, surroundings = load_tasks(settings)
        if arguments[0] == "jobs":
            Worker(arguments[1], client, settings, registry, host_of, surroundings).run()
        else:
            watch_store(asked, os.environ)  # here, since this child never forks
            Sweep(settings, registry, Jobs(client, keys), Recovery(client, keys), host_of)(_stop_event())
    except SettingsError as error:
        print(f"aj: {error}", file=sys.stderr)
        return EXIT_SETTINGS
    return 0


def _stop_event() -> Stop:
    stop = Stop()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    return stop


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
