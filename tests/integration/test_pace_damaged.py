"""What is known of the pace serves estimates: where it cannot be read, jobs are submitted, run and seen as ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from tests.conftest import Deployment
from tests.support.inside import attempt_at
from tests.support.jobs import document, submit, work_off


def key_of(deployment: Deployment, kind: str) -> str:
    prefix, queue = deployment.settings.prefix, deployment.queue
    return {
        "task": f"{prefix}:pace:task:square",
        "queue": f"{prefix}:pace:queue:{queue}",
        "line": f"{prefix}:pace:line:{queue}",
        "worker": f"rq:worker:{queue}",
        "workers": f"rq:workers:{queue}",
        "wip": f"rq:wip:{queue}",
    }[kind]


def make_a_list(kind: str) -> Callable[[Deployment], None]:
    def damage(deployment: Deployment) -> None:
        key = key_of(deployment, kind)
        deployment.redis.delete(key)
        deployment.redis.rpush(key, "no such thing")
        deployment.redis.expire(key, 60)

    return damage


def write(kind: str, field: str, value: str) -> Callable[[Deployment], None]:
    def damage(deployment: Deployment) -> None:
        deployment.redis.hset(key_of(deployment, kind), field, value)

    return damage


def add_a_worker_that_is_none(deployment: Deployment) -> None:
    deployment.redis.sadd(key_of(deployment, "workers"), key_of(deployment, "worker"))
    deployment.redis.expire(key_of(deployment, "workers"), 60)
    make_a_list("worker")(deployment)


DAMAGE: dict[str, Callable[[Deployment], None]] = {
    "lengths of the task": make_a_list("task"),
    "lengths of the queue": make_a_list("queue"),
    "line": make_a_list("line"),
    "started, no number": write("line", "started", "\xff"),
    "started, endless": write("line", "started", "inf"),
    "given, no number": write("line", "given", "x"),
    "a worker": add_a_worker_that_is_none,
    "the set of workers": make_a_list("workers"),
    "what runs": make_a_list("wip"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_only_estimates_suffer_where_they_cannot_be_made(
    deployment: Deployment, client: FlaskClient, damage: Callable[[Deployment], None]
) -> None:
    """Those who wait, who come, and whose job starts and ends."""
    first, second = submit(client, n=2), submit(client, n=3)
    damage(deployment)
    assert document(client, first)["status"] == "queued"
    third = submit(client, n=4)
    attempt_at(deployment, first, "e").start([])
    assert document(client, first)["status"] == "running"
    assert [document(client, each)["status"] for each in (second, third)] == ["queued", "queued"]
    if deployment.redis.type(key_of(deployment, "wip")) == b"list":
        deployment.redis.delete(key_of(deployment, "wip"))  # RQ itself cannot take a job over it
    if deployment.redis.type(key_of(deployment, "workers")) == b"list":
        deployment.redis.delete(key_of(deployment, "workers"))
    work_off(deployment)
    assert [document(client, each)["result"] for each in (second, third)] == [9, 16]


@pytest.mark.parametrize("damage", ["line", "given, no number", "started, no number"])
def test_a_line_that_cannot_be_read_begins_anew(deployment: Deployment, client: FlaskClient, damage: str) -> None:
    """Behind all that wait in it, with the next job that comes or starts."""
    before = [submit(client, n=n) for n in range(3)]
    DAMAGE[damage](deployment)
    after = [submit(client, n=n) for n in range(2)]
    assert document(client, after[-1])["position"] == 5
    worker = deployment.worker()
    for _ in before:
        worker.work_once()
    worker.work_once()
    assert document(client, after[-1])["position"] == 1


def test_a_worker_that_is_none_does_not_make_the_store_unready(deployment: Deployment, client: FlaskClient) -> None:
    """It does not live, and that is all that is told."""
    add_a_worker_that_is_none(deployment)
    answer = client.get("/readyz")
    assert (answer.status_code, "no worker is alive" in answer.text, '"store"' in answer.text) == (503, True, False)
