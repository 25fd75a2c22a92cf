"""What stands in RQ's lists and keys and can be no job of ours, or none any more: it stops neither worker nor sweep."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.store import Keys
from tests.conftest import Deployment
from tests.support.deliveries import deliveries
from tests.support.inside import rq_key, wait_for_end
from tests.support.jobs import document, submit, work_off
from tests.support.processes import running_worker
from tests.support.sweeping import lapse, make_sweep, take_and_vanish
from tests.support.waiting import wait_until

HOOK = "http://127.0.0.1:9/hook"
NO_TEXT = b"\xff\xfe"


def queue_key(deployment: Deployment) -> str:
    return f"rq:queue:{deployment.queue}"


def make_a_list(deployment: Deployment, key: str) -> None:
    deployment.redis.delete(key)
    deployment.redis.rpush(key, "no hash")


def test_entries_that_are_no_text_and_jobs_that_are_no_hash_stop_no_worker(
    deployment: Deployment, client: FlaskClient, folder: Path
) -> None:
    """Each is seen to once, with a line in the log; the jobs behind them run, and the processes are the same."""
    deployment.redis.rpush(queue_key(deployment), NO_TEXT)
    deployment.redis.rpush(f"{queue_key(deployment)}:intermediate", NO_TEXT)
    broken = submit(client, n=2, callback_url=HOOK)
    make_a_list(deployment, rq_key(broken))
    last = submit(client, n=3)
    with running_worker(deployment.env, folder, "--only", "jobs") as worker:
        children = sorted(worker.children())
        assert wait_for_end(client, last)["result"] == 9
        assert wait_for_end(client, broken)["error"]["type"] in ("task-unavailable", "lost")
        for key in (queue_key(deployment), f"{queue_key(deployment)}:intermediate"):
            wait_until(partial(_is_empty, deployment, key), what=f"an empty {key}")
        assert sorted(worker.children()) == children
        assert worker.output.count("is no id of a job; it is taken out") == 2
        assert "Traceback" not in worker.output
        assert "the store cannot be used (" not in worker.output
    assert deployment.redis.exists(rq_key(broken)) == 0
    assert len(deliveries(deployment)) == 1


def test_an_id_that_is_no_text_stops_no_sweep(
    deployment: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever ids stand: what is stuck beside it is seen to."""
    keys = Keys(deployment.settings.prefix)
    lost = submit(client, n=1)
    take_and_vanish(deployment)
    for key in (keys.leases, keys.delayed, keys.active):
        deployment.redis.zadd(key, {NO_TEXT: 0})
    stranded = submit(client, n=2)
    deployment.redis.rpush(f"{queue_key(deployment)}:intermediate", NO_TEXT)
    deployment.redis.lmove(queue_key(deployment), f"{queue_key(deployment)}:intermediate", "LEFT", "RIGHT")
    monkeypatch.setattr("aj.worker.sweep.STRANDED_AFTER_S", 0.0)
    sweep = make_sweep(deployment)
    sweep.once()
    assert document(client, lost)["error"]["type"] == "lost"
    assert [entry.decode() for entry in _entries(deployment, queue_key(deployment))] == [stranded]
    assert _entries(deployment, f"{queue_key(deployment)}:intermediate") == []
    for key in (keys.leases, keys.delayed, keys.active):
        deployment.redis.zrem(key, NO_TEXT)


def _entries(deployment: Deployment, key: str) -> list[bytes]:
    found: Any = deployment.redis.lrange(key, 0, -1)
    return list(found)


def _is_empty(deployment: Deployment, key: str) -> bool:
    return not _entries(deployment, key)


BREAKS: dict[str, Callable[[Deployment, str], object]] = {
    "another type": lambda it, job_id: make_a_list(it, rq_key(job_id)),
    "no payload": lambda it, job_id: it.redis.hdel(rq_key(job_id), "data"),
    "a field that is no text": lambda it, job_id: it.redis.hset(rq_key(job_id), "origin", NO_TEXT),
    "a payload that is no JSON": lambda it, job_id: it.redis.hset(rq_key(job_id), "data", NO_TEXT),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_job_whose_part_in_rq_is_broken_fails_when_it_is_taken(
    deployment: Deployment, client: FlaskClient, how: str
) -> None:
    """At once, with its webhook, and the job behind it runs."""
    job_id, behind = submit(client, n=2, callback_url=HOOK), submit(client, n=3)
    BREAKS[how](deployment, job_id)
    work_off(deployment)
    assert document(client, job_id)["error"]["type"] == "task-unavailable"
    assert document(client, behind)["result"] == 9
    assert len(deliveries(deployment)) == 1


@pytest.mark.parametrize("how", BREAKS)
def test_a_job_whose_part_in_rq_is_broken_can_be_cancelled(
    deployment: Deployment, client: FlaskClient, how: str
) -> None:
    """What is wrong with one job is no fault of the store."""
    job_id = submit(client, n=2)
    BREAKS[how](deployment, job_id)
    assert client.post(f"/jobs/{job_id}/cancel").status_code == 200
    assert document(client, job_id)["error"]["type"] == "cancelled"


@pytest.mark.parametrize("how", BREAKS)
def test_jobs_whose_part_in_rq_is_broken_keep_no_other_from_being_seen_to(
    deployment: Deployment, client: FlaskClient, how: str
) -> None:
    """A delayed one and a lost one stand before others in the sweep's way."""
    delayed = [submit(client, task="try_again_later") for _ in range(2)]
    work_off(deployment)
    running = [submit(client, n=n) for n in range(2)]
    for _ in running:
        take_and_vanish(deployment)
    deployment.redis.zadd(Keys(deployment.settings.prefix).delayed, dict.fromkeys(delayed, 1))
    for job_id in (delayed[0], running[0]):
        BREAKS[how](deployment, job_id)
    sweep = make_sweep(deployment)
    for _ in range(3):
        sweep.once()
    assert [document(client, each)["error"]["type"] for each in running] == ["lost", "lost"]
    work_off(deployment)
    lapse(deployment)
    sweep.once()
    assert [document(client, each)["status"] for each in delayed] == ["failed", "failed"]


def test_a_key_of_ours_that_is_of_another_type_stops_no_sweep(
    deployment: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be told of that job any more; the others are seen to, and its entry is gone."""
    broken, lost, taken = (submit(client, n=n) for n in range(3))
    take_and_vanish(deployment)
    take_and_vanish(deployment)
    deployment.redis.lmove(queue_key(deployment), f"{queue_key(deployment)}:intermediate")
    keys = Keys(deployment.settings.prefix)
    for job_id in (broken, taken):
        make_a_list(deployment, keys.job(job_id))
    monkeypatch.setattr("aj.worker.sweep.STRANDED_AFTER_S", 0.0)
    make_sweep(deployment).once()
    assert document(client, lost)["error"]["type"] == "lost"
    assert _entries(deployment, f"{queue_key(deployment)}:intermediate") == []
    deployment.redis.delete(keys.job(broken), keys.job(taken))
