"""Queued jobs whose entry or RQ's part is gone end `lost`; a job that waits, wherever it waits, is left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rq
from flask.testing import FlaskClient

from aj.errors import StoreUnavailable
from aj.store import Keys, orphans
from tests.conftest import Deployment
from tests.support.deliveries import deliveries
from tests.support.inside import rq_key, wait_for_end
from tests.support.jobs import document, submit, work_off
from tests.support.processes import running_worker
from tests.support.sweeping import lapse, make_sweep, take_and_vanish

JOBS = 12
HOOK = "http://127.0.0.1:9/hook"


def queue_key(deployment: Deployment) -> str:
    return f"rq:queue:{deployment.queue}"


def look_often(deployment: Deployment, times: int = 3) -> None:
    sweep = make_sweep(deployment)
    for _ in range(times):
        sweep.once()


def drop(deployment: Deployment, job_id: str) -> None:
    """Takes the entry out of the queue."""
    assert deployment.redis.lrem(queue_key(deployment), 1, job_id) == 1


def error_type(client: FlaskClient, job_id: str) -> str | None:
    found: str | None = document(client, job_id).get("error", {}).get("type")
    return found


# -- what is gone --------------------------------------------------------------------------------------------

Step = Callable[[Deployment, str], object]
LOSSES: dict[str, Step] = {
    "RQ's remove": lambda it, job_id: rq.Queue(it.queue, connection=it.redis).remove(job_id),
    "an empty queue": lambda it, job_id: it.redis.delete(queue_key(it)),
    "an entry in another list": lambda it, job_id: it.redis.lmove(queue_key(it), f"{queue_key(it)}.old"),
    "a queue of another name": lambda it, job_id: it.redis.rename(queue_key(it), f"{queue_key(it)}.old"),
    "RQ's part": lambda it, job_id: it.redis.delete(rq_key(job_id)),
    "RQ's part as another type": lambda it, job_id: _make_a_list(it, rq_key(job_id)),
    "the payload and the entry": lambda it, job_id: [
        it.redis.hdel(rq_key(job_id), "data"),
        it.redis.delete(queue_key(it)),
    ],
}


def _make_a_list(deployment: Deployment, key: str) -> None:
    deployment.redis.delete(key)
    deployment.redis.rpush(key, "no hash")


@pytest.mark.parametrize("loss", LOSSES)
def test_a_job_that_vanished_from_rqs_side_is_lost(deployment: Deployment, client: FlaskClient, loss: str) -> None:
    """After two looks, with its webhook, and in RQ's books as far as there are any."""
    job_id = submit(client, n=3, callback_url=HOOK)
    LOSSES[loss](deployment, job_id)
    sweep = make_sweep(deployment)
    sweep.once()
    assert document(client, job_id)["status"] == "queued", "one look is not enough"
    sweep.once()
    assert error_type(client, job_id) == "lost"
    assert len(deliveries(deployment)) == 1


def test_an_entry_gone_from_the_middle_is_noticed_when_its_turn_is_over(
    deployment: Deployment, client: FlaskClient
) -> None:
    """Until then nobody waits for it longer than for its neighbours, and nobody looks through the queue."""
    first, gone, _, last = (submit(client, n=n) for n in range(4))
    drop(deployment, gone)
    worker = deployment.worker()
    look_often(deployment)
    assert document(client, gone)["status"] == "queued"
    worker.work_once()
    look_often(deployment)
    assert error_type(client, gone) == "lost", "the queue's head came later"
    assert document(client, first)["status"] == "succeeded"
    work_off(deployment)
    assert document(client, last)["result"] == 9


def test_an_entry_gone_is_noticed_where_later_jobs_have_started(deployment: Deployment, client: FlaskClient) -> None:
    """Also where an older job stands at the head again."""
    old, gone, new = (submit(client, n=n) for n in range(3))
    drop(deployment, gone)
    deployment.redis.lmove(queue_key(deployment), queue_key(deployment), "RIGHT", "LEFT")
    take_and_vanish(deployment)
    assert document(client, new)["status"] == "running"
    look_often(deployment, 2)
    assert (document(client, old)["status"], error_type(client, gone)) == ("queued", "lost")


def test_the_last_of_many_jobs_is_noticed_too(deployment: Deployment, client: FlaskClient) -> None:
    """A look sees a hundred jobs, the next one the next hundred, and none is forgotten in between."""
    ids = [submit(client, n=1) for _ in range(orphans.JOBS_AT_A_TIME + 20)]
    deployment.redis.delete(rq_key(ids[-1]), rq_key(ids[0]))
    look_often(deployment, 4)
    assert [error_type(client, each) for each in (ids[0], ids[1], ids[-1])] == ["lost", None, "lost"]


def test_looks_that_may_go_through_few_entries_still_see_to_every_job(
    deployment: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the queue, one look searches it once at least, and the next one goes on from there."""
    monkeypatch.setattr(orphans, "ENTRIES_AT_A_TIME", 0)
    gone = [submit(client, n=n) for n in range(5)]
    waiting = [submit(client, n=n) for n in range(5)]
    for job_id in gone:
        drop(deployment, job_id)
    look_often(deployment, 20)
    assert {error_type(client, each) for each in gone} == {"lost"}
    assert {document(client, each)["status"] for each in waiting} == {"queued"}


def test_an_orphan_whose_task_has_retries_ends_for_good_at_once(deployment: Deployment, client: FlaskClient) -> None:
    """Its parameters are gone: further attempts could not run."""
    job_id = submit(client, task="try_again_at_once", fail=False)
    deployment.redis.delete(rq_key(job_id))
    look_often(deployment, 2)
    seen = document(client, job_id)
    assert (seen["status"], seen["error"]["type"], seen["attempt"]) == ("failed", "lost", 1)


@pytest.mark.parametrize("loss", ["RQ's part", "RQ's part as another type"])
def test_a_lost_attempt_whose_parameters_are_gone_is_the_last_one(
    deployment: Deployment, client: FlaskClient, loss: str
) -> None:
    """Its task has retries, which cannot run."""
    job_id = submit(client, task="try_again_at_once", fail=False)
    take_and_vanish(deployment)
    LOSSES[loss](deployment, job_id)
    look_often(deployment, 1)
    seen = document(client, job_id)
    assert (seen["status"], seen["error"]["type"], seen["attempt"]) == ("failed", "lost", 1)


# -- what waits ----------------------------------------------------------------------------------------------


def _taken(deployment: Deployment, job_id: str) -> None:
    deployment.redis.lmove(queue_key(deployment), f"{queue_key(deployment)}:intermediate")


def _put_back(deployment: Deployment, job_id: str) -> None:
    """A sweep rescued it, and a job that came later has started meanwhile."""
    _taken(deployment, job_id)
    submit(deployment.client(), n=8)
    deployment.worker().work_once()
    submit(deployment.client(), n=8)
    deployment.redis.lmove(f"{queue_key(deployment)}:intermediate", queue_key(deployment), "LEFT", "LEFT")


def _passed_on(deployment: Deployment, job_id: str) -> None:
    """The worker of another deployment took it: it stands at the end, behind jobs that came later."""
    client = deployment.client()
    submit(client, n=8)
    deployment.redis.lmove(queue_key(deployment), queue_key(deployment), "LEFT", "RIGHT")
    deployment.worker().work_once()
    submit(client, n=8)


def _without(*fields: str) -> Step:
    """As a job of an older version has no such fields."""
    return lambda it, job_id: it.redis.hdel(Keys(it.settings.prefix).job(job_id), *fields)


WAITS: dict[str, Step] = {
    "in the queue": lambda it, job_id: None,
    "taken a moment ago": _taken,
    "put back to the head": _put_back,
    "passed on": _passed_on,
    "of an older version": _without("number", "queue"),
    "without a number": _without("number"),
    "with a line that was forgotten": lambda it, job_id: it.redis.delete(f"{it.settings.prefix}:pace:line:{it.queue}"),
    "behind an entry that is no job's": lambda it, job_id: it.redis.lpush(queue_key(it), "no job"),
}


@pytest.mark.parametrize("how", WAITS)
def test_a_job_that_waits_is_never_judged(deployment: Deployment, client: FlaskClient, how: str) -> None:
    """Wherever its entry stands, and whatever is known of its place."""
    job_id = submit(client, n=3)
    WAITS[how](deployment, job_id)
    look_often(deployment)
    assert document(client, job_id)["status"] == "queued"
    deployment.redis.lmove(f"{queue_key(deployment)}:intermediate", queue_key(deployment))
    work_off(deployment)
    assert document(client, job_id)["result"] == 9


def test_a_job_between_its_attempts_is_never_judged(deployment: Deployment, client: FlaskClient) -> None:
    """Neither while it is delayed nor when it is promoted, nor at the end of the queue after a retry at once."""
    job_id = submit(client, task="try_again_later")
    work_off(deployment)
    look_often(deployment)
    assert document(client, job_id)["status"] == "queued"
    deployment.redis.zadd(Keys(deployment.settings.prefix).delayed, {job_id: 1})
    again = submit(client, task="try_again_at_once", fail=False)
    take_and_vanish(deployment)
    lapse(deployment)
    look_often(deployment)
    assert [document(client, each)["status"] for each in (job_id, again)] == ["queued", "queued"]
    work_off(deployment)
    assert document(client, job_id)["error"]["type"] == "task-failed"
    assert document(client, again)["result"] == "done"


def test_while_the_worker_of_another_deployment_passes_jobs_on_no_look_judges_one(
    deploy: Callable[..., Deployment], folder: Path
) -> None:
    """Real workers in one queue, and sweeps that look without a pause: between two lists no job is in none."""
    one = deploy()
    two = deploy(AJ_QUEUES=one.queue)
    client, sweeps, done = one.client(), [make_sweep(one), make_sweep(two)], threading.Event()

    def look_on(recovery: Any) -> None:
        while not done.wait(0.005):
            try:
                found.extend(recovery.orphans())
            except StoreUnavailable:
                return

    found: list[str] = []
    threads = [threading.Thread(target=look_on, args=(sweep._recovery,), daemon=True) for sweep in sweeps]
    with running_worker(one.env, folder, "--only", "jobs"), running_worker(two.env, folder, "--only", "jobs"):
        for thread in threads:
            thread.start()
        ids = [submit(client, n=n) for n in range(JOBS)]
        results = [wait_for_end(client, job_id).get("result") for job_id in ids]
    done.set()
    for thread in threads:
        thread.join()
    assert results == [n * n for n in range(JOBS)]
    assert found == []
