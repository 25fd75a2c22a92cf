"""What stands in the store behind a job: RQ's side, the outbox, and ends that need no work-horse."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rq.job
from flask.testing import FlaskClient

from aj.deliver import Deliver
from aj.egress import Egress, endpoint_of
from aj.job import Outcome
from aj.settings import Settings
from aj.store import Jobs, Keys, Outbox, connect
from aj.worker.attempt import JobAttempt
from tests.conftest import Deployment
from tests.support.jobs import submit


def jobs_of(deployment: Deployment) -> Jobs:
    return Jobs(connect(deployment.settings.redis_url), Keys(deployment.settings.prefix))


def outbox_of(deployment: Deployment) -> Outbox:
    return Outbox(connect(deployment.settings.redis_url), Keys(deployment.settings.prefix))


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


def deliveries(deployment: Deployment) -> list[str]:
    """The keys of all deliveries in the outbox, one for each."""
    return deployment.keys("out:job:*")


def message(deployment: Deployment, job_id: str) -> dict[str, Any]:
    """The webhook of the job as it stands in the outbox."""
    body: Any = deployment.redis.hget(f"{deployment.settings.prefix}:out:job:{job_id}", "body")
    return dict(json.loads(body))


def outbox_indexes(deployment: Deployment) -> list[str]:
    """The keys that list what is to be delivered; all are gone when nothing is."""
    return deployment.keys("out:hosts") + deployment.keys("out:due:*") + deployment.keys("out:busy:*")


def attempt_at(deployment: Deployment, job_id: str, execution: str, settings: Settings | None = None) -> JobAttempt:
    """A try to run the job that has no RQ behind it."""
    used = settings or deployment.settings
    return JobAttempt(used, jobs_of(deployment), job_id, execution, endpoint_of)


def ended(deployment: Deployment, client: FlaskClient, url: str, outcome: Outcome | None = None, **changes: str) -> str:
    """The id of a job that has just ended, its webhook to `url` in the outbox. `changes` are settings of its worker."""
    job_id = submit(client, n=1, callback_url=url)
    attempt = attempt_at(deployment, job_id, f"execution of {job_id}", Settings.from_env({**deployment.env, **changes}))
    attempt.start([])
    attempt.outcome = outcome or Outcome.succeeded(b"1")
    attempt.finish([])
    return job_id


@contextmanager
def delivering(deployment: Deployment, outbox: Outbox | None = None, **changes: str) -> Iterator[None]:
    """A deliverer in a thread."""
    settings = Settings.from_env({**deployment.env, **changes})
    egress = Egress(settings.callback_allow, settings.callback_timeout_s, "aj/test")
    deliver, stop = Deliver(settings, outbox or outbox_of(deployment), egress), threading.Event()
    thread = threading.Thread(target=deliver, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        deployment.redis.publish(Keys(settings.prefix).news, "stop")
        thread.join()


def starts(path: Path) -> list[int]:
    """Pids of the processes in which `wait_for_file` has begun to wait for `path`, in their order."""
    mark = Path(f"{path}.started")
    return [int(line) for line in mark.read_text().splitlines()] if mark.exists() else []
