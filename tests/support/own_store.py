"""A deployment with a server of its own, for tests that break the server or look at all that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from aj.local.embedded import ServerProcess, start_server
from aj.settings import Settings
from aj.store import Keys
from tests.conftest import Deployment


def deployment_on(server: ServerProcess, **changes: str) -> Deployment:
    """A deployment with usual names on `server`."""
    env = {"AJ_REDIS_URL": server.url, "AJ_TASKS": "tests.support.tasks", "AJ_CALLBACK_ALLOW": "127.0.0.1", **changes}
    return Deployment(Settings.from_env(env), env, redis.Redis.from_url(server.url))


@contextmanager
def own_deployment(folder: Path, **changes: str) -> Iterator[Deployment]:
    """Starts a server in `folder`, which must be new, and stops it at the end."""
    with start_server(folder) as server:
        yield deployment_on(server, **changes)


def all_that_is_stored(deployment: Deployment) -> dict[bytes, tuple[bytes, bool]]:
    """Every key of the server, ours and RQ's: its value as the server writes it to disk, and whether it expires.

    Only what is counted is left out, refusals among it.
    """
    client: Any = deployment.redis
    counted = Keys(deployment.settings.prefix).metrics.encode()
    keys = [key for key in client.scan_iter(count=1000) if key != counted]
    return {key: (client.dump(key), client.pttl(key) >= 0) for key in keys}
