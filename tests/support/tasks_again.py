"""A task that waits, and runs again where its worker is lost."""

from __future__ import annotations

from aj import task
from tests.support.tasks import wait_for_file


@task(retries=1, retry_delays_s=(0,))
def wait_again(path: str) -> str:
    return wait_for_file(path)
