"""The parts that run together on one machine: how each is started, and where it listens."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from aj.local.supervise import Group, listens
from aj.settings import Settings

API, WORKER, HOOKSINK = "api", "worker", "hooksink"
LOOPBACK = "127.0.0.1"
EVERYWHERE = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 (an address to recognise, not to listen on)
READY_S = 60.0

_CONFIGURED = ("-c", "python:aj.local.gunicorn_conf")


def api_options(*options: str) -> list[str]:
    """What gunicorn is told to serve the API; `options` win over our configuration."""
    return [*_CONFIGURED, *options, "aj.local.web:make_app()"]


def serve_api() -> list[str]:
    """The command that serves the API."""
    return [sys.executable, "-m", "gunicorn", *api_options()]


def serve_hooksink(port: int) -> list[str]:
    """The command that serves the receiver on a loopback port."""
    return [sys.executable, "-m", "gunicorn", *_CONFIGURED, "-b", f"{LOOPBACK}:{port}", "-w", "1", "hooksink:app"]


def run_worker() -> list[str]:
    """The command that runs jobs and delivers webhooks."""
    return [sys.executable, "-m", "aj.worker"]


def reachable(host: str) -> str:
    """The address under which a process of this machine reaches what listens on `host`."""
    return EVERYWHERE.get(host, host)


def start_parts(group: Group, settings: Settings, environ: Mapping[str, str]) -> None:
    """Starts all parts at once: each finds, or starts, the store for itself, and waits for nobody."""
    group.start(API, serve_api(), environ)
    group.start(WORKER, run_worker(), environ)
    group.start(HOOKSINK, serve_hooksink(settings.hooksink_port), environ)


def are_listening(group: Group, settings: Settings) -> bool:
    """Waits until the API and the receiver accept connections; False where they do not within a minute."""
    addresses = [(reachable(settings.host), settings.port), (LOOPBACK, settings.hooksink_port)]

    def ready() -> bool:
        addresses[:] = [address for address in addresses if not listens(*address)]
        return not addresses

    return group.watch(ready, READY_S, step_s=0.02)


def stop_in_order(group: Group) -> None:
    """Stops what uses the store first, then what they call; the store itself is the caller's.

    Raises: Stopped: a second request to stop came meanwhile; they may still run.
    """
    group.stop(API, WORKER)
    group.stop(HOOKSINK)
