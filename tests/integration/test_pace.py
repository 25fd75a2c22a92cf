"""Place, expected end and Retry-After as a caller sees them, with jobs that come and go in every way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.job import Outcome
from aj.pace import KEPT, Lengths, packed
from tests.conftest import Deployment
from tests.support.inside import attempt_at
from tests.support.jobs import document, run, submit, work_off
from tests.support.sweeping import lapse, make_sweep
from tests.support.waiting import wait_until

THIRTIES = packed(30.0) * KEPT


def place(client: FlaskClient, job_id: str) -> int | None:
    return document(client, job_id).get("position")


def remember(deployment: Deployment, text: bytes, task: str = "square") -> None:
    """The task and its queue have run for so long of late, and one worker serves the queue."""
    prefix = deployment.settings.prefix
    deployment.redis.set(f"{prefix}:pace:task:{task}", text, ex=60)
    deployment.redis.set(f"{prefix}:pace:queue:{deployment.queue}", text, ex=60)
    name = f"rq:worker:of-{deployment.queue}"
    deployment.redis.sadd(f"rq:workers:{deployment.queue}", name)
    deployment.redis.hset(name, "aj_prefix", deployment.settings.prefix)
    deployment.redis.expire(name, 60)
    deployment.redis.expire(f"rq:workers:{deployment.queue}", 60)


def start(deployment: Deployment, job_id: str) -> None:
    """The job runs, and stands among what RQ knows to run."""
    now: Any = deployment.redis.time()
    attempt_at(deployment, job_id, "e").start([("ZADD", f"rq:wip:{deployment.queue}", now[0] + 60, f"{job_id}:e")])
    deployment.redis.expire(f"rq:wip:{deployment.queue}", 60)


def remembered(deployment: Deployment, kind: str) -> Lengths:
    text: Any = deployment.redis.get(f"{deployment.settings.prefix}:pace:{kind}")
    return Lengths.unpacked(text or b"")


def test_the_place_in_the_queue_counts_down(deployment: Deployment, client: FlaskClient) -> None:
    """One is the next; a job that runs or has ended has no place."""
    ids = [submit(client, n=n) for n in range(3)]
    assert [place(client, each) for each in ids] == [1, 2, 3]
    worker = deployment.worker()
    worker.work_once()
    assert [place(client, each) for each in ids] == [None, 1, 2]
    attempt_at(deployment, ids[1], "e").start([])
    assert [place(client, each) for each in ids] == [None, None, 1]


def test_a_cancelled_job_ahead_counts_at_most_until_the_next_one_starts(
    deployment: Deployment, client: FlaskClient
) -> None:
    """The place is an estimate, and never beyond the end of the queue."""
    ids = [submit(client, n=n) for n in range(5)]
    for each in ids[:3]:
        assert client.post(f"/jobs/{each}/cancel").status_code == 200
    assert [place(client, each) for each in ids[3:]] == [2, 2]
    deployment.worker().work_once()
    assert place(client, ids[4]) == 1


def test_a_job_that_is_tried_again_goes_to_the_end(deployment: Deployment, client: FlaskClient) -> None:
    """With a number of its own, behind those that came meanwhile."""
    again = submit(client, task="try_again_at_once", fail=True)
    others = [submit(client, n=n) for n in range(2)]
    deployment.worker().work_once()
    assert document(client, again)["attempt"] == 1
    assert [place(client, each) for each in [*others, again]] == [1, 2, 3]
    work_off(deployment)
    assert place(client, submit(client, n=1)) == 1


def test_a_delayed_attempt_has_no_place_until_it_is_due(deployment: Deployment, client: FlaskClient) -> None:
    """And nobody is asked to come back before it is due."""
    job_id = submit(client, task="try_again_later")
    work_off(deployment)
    answer = client.get(f"/jobs/{job_id}")
    assert (answer.json or {})["status"] == "queued"
    assert "position" not in (answer.json or {})
    assert 3590 <= int(answer.headers["Retry-After"]) <= 3600 * 1.5 + 1
    deployment.redis.zadd(f"{deployment.settings.prefix}:delayed", {job_id: 1})
    first = submit(client, n=1)
    make_sweep(deployment).once()
    assert [place(client, first), place(client, job_id)] == [1, 2]


def test_a_job_put_back_to_the_head_is_the_next_and_takes_nobody_back(
    deployment: Deployment, client: FlaskClient
) -> None:
    """A later one has started meanwhile; when the first starts after it, the count does not run backwards."""
    ids = [submit(client, n=n) for n in range(4)]
    queue = f"rq:queue:{deployment.queue}"
    deployment.redis.lmove(queue, f"{queue}:intermediate", "LEFT", "RIGHT")
    deployment.worker().work_once()
    assert place(client, ids[0]) == 1, "taken and not started"
    assert make_sweep(deployment)._recovery.rescue(deployment.queue, ids[0])
    assert [place(client, each) for each in (ids[0], *ids[2:])] == [1, 1, 2]
    deployment.worker().work_once()
    assert [place(client, each) for each in ids] == [None, None, 1, 2]


def test_each_queue_counts_for_itself(deploy: Callable[..., Deployment]) -> None:
    """A job of one queue does not wait for those of another, though both are of one deployment."""
    deployment = deploy(AJ_TASKS="tests.support.tasks,tests.support.tasks_by_name")
    other = deploy(AJ_PREFIX=deployment.settings.prefix)
    one, two = deployment.client(), other.client()
    assert deployment.queue != other.queue
    ids = [submit(one, n=1), submit(two, n=1), submit(one, n=2), submit(two, n=2)]
    assert [place(one, each) for each in ids] == [1, 1, 2, 2]
    other.worker().work_once()
    assert [place(one, each) for each in ids] == [1, None, 2, 1]


def test_the_lengths_of_runs_are_remembered(deployment: Deployment, client: FlaskClient) -> None:
    """Of the task and of the queue, the last 64 of them, until some time after the last."""
    for n in range(3):
        run(deployment, client, n=n)
    run(deployment, client, task="fail", text="x")
    assert len(remembered(deployment, "task:square").seconds) == 3
    assert len(remembered(deployment, "task:fail").seconds) == 1
    assert len(remembered(deployment, f"queue:{deployment.queue}").seconds) == 4
    assert max(remembered(deployment, "task:square").seconds) < 5
    remember(deployment, THIRTIES)
    run(deployment, client, n=4)
    seconds = remembered(deployment, "task:square").seconds
    assert len(seconds) == KEPT
    assert seconds[0] < 5 < seconds[1]
    for key in deployment.keys("pace:*"):
        assert 86_400 < int(deployment.redis.ttl(key)) <= 30 * 86_400


def test_an_end_from_outside_says_nothing_of_other_runs(deployment: Deployment, client: FlaskClient) -> None:
    """Cancelled, lost, and refused by the worker: how long the task takes is not seen by them."""
    submit(client, n=1)
    client.post(f"/jobs/{submit(client, n=2)}/cancel")
    worker = deployment.worker()
    worker.see_through = lambda *_, **__: None  # type: ignore[method-assign]
    worker.work_once()
    lapse(deployment)
    make_sweep(deployment).once()
    unknown = submit(client, n=3)
    deployment.worker(AJ_TASKS="tests.support.tasks_by_name").work_once()
    assert document(client, unknown)["error"]["type"] == "task-unavailable"
    assert remembered(deployment, "task:square") == remembered(deployment, f"queue:{deployment.queue}") == Lengths()


def test_retry_after_and_the_expected_end_follow_the_tasks_recent_runs(
    deployment: Deployment, client: FlaskClient
) -> None:
    """From the first answer on; a running job is asked for when it can have ended."""
    remember(deployment, THIRTIES)
    accepted = client.post("/jobs", json={"n": 5})
    assert accepted.headers["Retry-After"] == "36"
    job_id = (accepted.json or {})["job_id"]
    second = submit(client, n=6)
    assert (document(client, job_id)["position"], document(client, job_id)["eta_s"]) == (1, 30)
    start(deployment, job_id)
    running = client.get(f"/jobs/{job_id}")
    assert 34 <= int(running.headers["Retry-After"]) <= 36
    assert 28 <= (running.json or {})["eta_s"] <= 30
    waiting = document(client, second)
    assert (waiting["position"], waiting["eta_s"]) == (1, 45), "half a run until the worker is free, and one of its own"


def test_a_job_remembers_that_nothing_was_known_when_it_was_submitted(
    deployment: Deployment, client: FlaskClient
) -> None:
    """Its caller has asked often by the time when something is; later jobs are asked for in small steps."""
    early = submit(client, n=1)
    remember(deployment, THIRTIES)
    late = submit(client, n=2)
    for job_id, wait_s in ((early, "45"), (late, "36")):
        start(deployment, job_id)
        assert client.get(f"/jobs/{job_id}").headers["Retry-After"] == wait_s


def test_jobs_of_another_queue_keep_no_worker_of_this_one_busy(deploy: Callable[..., Deployment]) -> None:
    """A free worker is seen to be one, and the start is sure; where it is not, the wild runs of the queue count."""
    deployment = deploy()
    other = deploy(AJ_PREFIX=deployment.settings.prefix)
    client = deployment.client()
    remember(deployment, THIRTIES)
    wild = (packed(0.05) + packed(600.0)) * (KEPT // 2)
    deployment.redis.set(f"{deployment.settings.prefix}:pace:queue:{deployment.queue}", wild, ex=60)
    start(other, submit(other.client(), n=1))
    here = client.post("/jobs", json={"n": 2})
    assert here.headers["Retry-After"] == "36"
    start(deployment, (here.json or {})["job_id"])
    assert client.post("/jobs", json={"n": 3}).headers["Retry-After"] == "45"


def test_nobody_comes_back_after_the_result_is_gone(deploy: Callable[..., Deployment]) -> None:
    """At most half of the result's life late, however long the job took."""
    deployment = deploy(AJ_RESULT_TTL_S="10")
    client = deployment.client()
    job_id = submit(client, n=5)
    key = f"{deployment.settings.prefix}:job:{job_id}"
    created_ms: Any = deployment.redis.hget(key, "created_ms")
    deployment.redis.hset(key, "created_ms", int(created_ms) - 3_600_000)
    assert client.get(f"/jobs/{job_id}").headers["Retry-After"] == "5"


def test_a_job_of_an_older_version_is_waited_for_by_its_age(deployment: Deployment, client: FlaskClient) -> None:
    """Its hash names no queue and holds no number."""
    job_id = submit(client, n=5)
    deployment.redis.hdel(f"{deployment.settings.prefix}:job:{job_id}", "queue", "number")
    answer = client.get(f"/jobs/{job_id}")
    assert "position" not in (answer.json or {})
    assert answer.headers["Retry-After"] == "1"
    work_off(deployment)
    assert document(client, job_id)["result"] == 25


def test_counters_that_are_lost_break_nothing(deployment: Deployment, client: FlaskClient) -> None:
    """They may expire, or be deleted by hand: the length of the queue bounds the place, and jobs run."""
    ids = [submit(client, n=n) for n in range(3)]
    deployment.worker().work_once()
    deployment.redis.delete(*deployment.keys("pace:*"))
    late = submit(client, n=4)
    assert [place(client, each) for each in [*ids, late]] == [None, 2, 3, 1]
    work_off(deployment)
    assert place(client, submit(client, n=1)) == 1
    assert document(client, late)["result"] == 16


@pytest.mark.parametrize("junk", [b"", b"x", b"\xff" * 128, b"\0" * 127])
def test_a_broken_memory_breaks_no_request(deployment: Deployment, client: FlaskClient, junk: bytes) -> None:
    """Whatever stands there, the answers are whole seconds."""
    remember(deployment, junk)
    for job_id in [submit(client, n=n) for n in range(2)]:
        assert int(client.get(f"/jobs/{job_id}").headers["Retry-After"]) >= 1


def test_the_etag_stands_still_while_only_the_estimates_move(deployment: Deployment, client: FlaskClient) -> None:
    """It is weak then, as two bodies share it; a 304 tells the wait anew. At the end it is strong."""
    remember(deployment, THIRTIES)
    first, second = submit(client, n=1), submit(client, n=2)
    before = client.get(f"/jobs/{second}")
    attempt_at(deployment, first, "e").start([])
    after = client.get(f"/jobs/{second}")
    assert before.data != after.data
    assert before.headers["ETag"] == after.headers["ETag"]
    assert after.headers["ETag"].startswith("W/")
    unchanged = client.get(f"/jobs/{second}", headers={"If-None-Match": before.headers["ETag"]})
    assert (unchanged.status_code, unchanged.data) == (304, b"")
    assert unchanged.headers["Retry-After"] == after.headers["Retry-After"] != before.headers["Retry-After"]
    assert unchanged.headers["ETag"] == before.headers["ETag"]
    work_off(deployment)
    assert client.get(f"/jobs/{second}").headers["ETag"].startswith('"')


def test_if_match_needs_a_strong_tag(deployment: Deployment, client: FlaskClient) -> None:
    """A weak one never matches it. Source: RFC 9110 section 13.1.1."""
    job_id = submit(client, n=1)
    weak = client.get(f"/jobs/{job_id}").headers["ETag"]
    for tag in (weak, weak.removeprefix("W/")):
        assert client.get(f"/jobs/{job_id}", headers={"If-Match": tag}).status_code == 412
    work_off(deployment)
    strong = client.get(f"/jobs/{job_id}").headers["ETag"]
    assert client.get(f"/jobs/{job_id}", headers={"If-Match": strong}).status_code == 200


def test_who_waits_for_a_change_is_not_woken_by_an_estimate(deployment: Deployment, client: FlaskClient) -> None:
    """The job ahead starts and ends, the place moves, and the request is held until the job itself changes."""
    first, second = submit(client, n=1), submit(client, n=2)
    known = {"Prefer": "wait=20", "If-None-Match": client.get(f"/jobs/{second}").headers["ETag"]}
    answers: list[Any] = []
    path = f"/jobs/{second}"
    other = deployment.client()
    waiting = threading.Thread(target=lambda: answers.append(other.get(path, headers=known)))
    waiting.start()
    channel = f"{deployment.settings.prefix}:changes"
    wait_until(lambda: deployment.redis.pubsub_numsub(channel)[0][1], what="a waiting request")
    attempt = attempt_at(deployment, first, "e")
    attempt.start([])
    attempt.decide(Outcome.succeeded(b"1"))
    attempt.end([])
    assert place(client, second) == 1
    # Told of a change without one, it looks and goes on waiting.
    deployment.redis.publish(channel, second)
    waiting.join(0.5)
    assert waiting.is_alive()
    attempt_at(deployment, second, "e").start([])
    waiting.join(15)
    assert (answers[0].status_code, answers[0].json["status"]) == (200, "running")
