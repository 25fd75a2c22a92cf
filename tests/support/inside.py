"""What stands in the store behind a job, RQ's side too, and tries that need no work-horse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rq.job
from flask.testing import FlaskClient

from aj.egress import host_of
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Claim, Jobs, Keys, connect
from aj.worker.attempt import JobAttempt
from tests.conftest import Deployment
from tests.support.jobs import document
from tests.support.waiting import wait_until


def jobs_of(deployment: Deployment) -> Jobs:
    return Jobs(connect(deployment.settings.redis_url), Keys(deployment.settings.prefix))


def our_hash(deployment: Deployment, job_id: str) -> dict[bytes, bytes]:
    found: Any = deployment.redis.hgetall(f"{deployment.settings.prefix}:job:{job_id}")
    return dict(found)


def rq_key(job_id: str) -> str:
    """RQ's hash of the job."""
    return str(rq.job.Job.key_for(job_id))


def rq_hash(deployment: Deployment, job_id: str) -> dict[bytes, bytes]:
    found: Any = deployment.redis.hgetall(rq_key(job_id))
    return dict(found)


def rq_leftovers(deployment: Deployment, *job_ids: str) -> list[str]:
    """What RQ notes only of jobs that are under way: nothing of it may stay behind."""
    queue, left = deployment.queue, []
    taken: Any = deployment.redis.lrange(f"rq:queue:{queue}:intermediate", 0, -1)
    under_way: Any = deployment.redis.zrange(f"rq:wip:{queue}", 0, -1)
    left += [f"intermediate {entry.decode()}" for entry in taken]
    left += [f"wip {entry.decode()}" for entry in under_way]
    for job_id in job_ids:
        notes: Any = deployment.redis.scan_iter(f"rq:execution*:{job_id}*", count=1000)
        left += sorted(f"execution {key.decode()}" for key in notes)
    return left


def attempt_at(deployment: Deployment, job_id: str, execution: str, settings: Settings | None = None) -> JobAttempt:
    """A try to run the job that has no RQ behind it."""
    used = settings or deployment.settings
    return JobAttempt(used, Registry.load(used.tasks), jobs_of(deployment), Claim(job_id, execution), host_of)


def starts(path: Path) -> list[int]:
    """Pids of the processes in which `wait_for_file` has begun to wait for `path`, in their order."""
    mark = Path(f"{path}.started")
    return [int(line) for line in mark.read_text().splitlines()] if mark.exists() else []


def wait_for_end(client: FlaskClient, job_id: str) -> dict[str, Any]:
    """The document of the job once it has ended."""
    wait_until(lambda: document(client, job_id)["status"] in ("succeeded", "failed"), what=f"the end of {job_id}")
    return document(client, job_id)


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
