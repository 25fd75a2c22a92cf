"""Jobs that nobody sees to any more are seen to: lost, run again, put back, promoted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj import clock
from aj.egress import host_of
from aj.job import Outcome
from aj.registry import Registry
from aj.store import Claim, Fenced, Jobs, Keys, connect
from aj.store.recovery import Held
from aj.worker.attempt import JobAttempt
from tests.conftest import Deployment
from tests.support.jobs import document, submit, work_off
from tests.support.sweeping import make_sweep, take_and_vanish


def rq_status(deployment: Deployment, job_id: str) -> str:
    status: Any = deployment.redis.hget(f"rq:job:{job_id}", "status")
    return str(status.decode())


def test_a_running_job_whose_lease_is_over_is_lost(deployment: Deployment, client: FlaskClient) -> None:
    """With its webhook, and in RQ's books as well."""
    job_id = submit(client, n=3, callback_url="http://127.0.0.1:9/hook")
    take_and_vanish(deployment)
    make_sweep(deployment).once()
    seen = document(client, job_id)
    assert (seen["status"], seen["error"]["type"]) == ("failed", "lost")
    assert seen["callback"]["state"] == "pending"
    assert rq_status(deployment, job_id) == "failed"
    assert deployment.redis.zcard(f"rq:wip:{deployment.queue}") == 0
    assert deployment.redis.zscore(f"rq:failed:{deployment.queue}", job_id) is not None


def test_a_lease_that_is_not_over_is_left_alone(deployment: Deployment, client: FlaskClient) -> None:
    """A worker that lives keeps its job."""
    job_id = submit(client, n=3)
    take_and_vanish(deployment)
    key = Keys(deployment.settings.prefix).leases
    deployment.redis.zadd(key, {job_id: clock.now_ms() + 60_000})
    make_sweep(deployment).once()
    assert document(client, job_id)["status"] == "running"


def test_a_lease_renewed_between_look_and_judgement_saves_the_job(deployment: Deployment, client: FlaskClient) -> None:
    """The script asks again: what was over when the sweep looked may live when it judges."""
    job_id = submit(client, n=3)
    take_and_vanish(deployment)
    sweep = make_sweep(deployment)
    execution: Any = deployment.redis.hget(Keys(deployment.settings.prefix).job(job_id), "execution")
    jobs = sweep._jobs
    assert jobs.beat(Claim(job_id, execution.decode()), 60, [])
    sweep._one(sweep._end_lapsed, job_id, clock.now_ms())
    assert document(client, job_id)["status"] == "running"


def test_after_the_store_was_away_workers_get_a_whole_lease(deployment: Deployment, client: FlaskClient) -> None:
    """Nobody could renew a lease while the store was away, so nobody is judged by it."""
    job_id = submit(client, n=3)
    take_and_vanish(deployment)
    make_sweep(deployment, in_touch_for_s=1).once()
    assert document(client, job_id)["status"] == "running"


def test_after_the_store_s_clock_leapt_workers_get_a_whole_lease(deployment: Deployment, client: FlaskClient) -> None:
    """A host that slept, a store that hung and a clock that was set look alike: leases end that nobody could renew.
    Once the lease is over after that, who has not renewed is judged."""
    job_id = submit(client, n=3)
    sweep = make_sweep(deployment)
    sweep.once()
    take_and_vanish(deployment)
    assert sweep._looked_ms is not None
    sweep._looked_ms -= 3600 * 1000
    sweep.once()
    assert document(client, job_id)["status"] == "running"
    sweep._in_touch_since_s -= deployment.settings.lease_s
    sweep.once()
    assert document(client, job_id)["error"]["type"] == "lost"


def test_a_late_outcome_of_a_lost_job_changes_nothing(deployment: Deployment, client: FlaskClient) -> None:
    """A worker that was cut off comes back with a result; the final status stands, in our hash and in RQ's."""
    job_id = submit(client, n=3)
    take_and_vanish(deployment)
    execution: Any = deployment.redis.hget(Keys(deployment.settings.prefix).job(job_id), "execution")
    make_sweep(deployment).once()
    before = document(client, job_id)
    late = _attempt(deployment, client, Claim(job_id, execution.decode()))
    late.decide(Outcome.succeeded(b"9"))
    with pytest.raises(Fenced):
        late.end([("SET", "must-not-be-written", "1")])
    assert document(client, job_id) == before
    assert rq_status(deployment, job_id) == "failed"
    assert deployment.redis.get("must-not-be-written") is None


def test_a_lost_job_whose_task_has_retries_runs_again(deployment: Deployment, client: FlaskClient) -> None:
    """Counted in `attempt`, and never under two executions."""
    job_id = submit(client, task="try_again_at_once", fail=False)
    take_and_vanish(deployment)
    make_sweep(deployment).once()
    assert document(client, job_id)["status"] == "queued"
    late = _attempt(deployment, client, Claim(job_id, "another"))
    late.decide(Outcome.succeeded(b"9"))
    with pytest.raises(Fenced):
        late.end([])
    work_off(deployment)
    seen = document(client, job_id)
    assert (seen["status"], seen["attempt"]) == ("succeeded", 2)


def test_a_failed_attempt_is_delayed_and_then_promoted_once(deployment: Deployment, client: FlaskClient) -> None:
    """The sweep is the scheduler: nothing runs before the delay is over, and two sweeps queue it once."""
    job_id = submit(client, task="try_again_later")
    work_off(deployment)
    seen = document(client, job_id)
    assert (seen["status"], seen["attempt"]) == ("queued", 1)
    assert "started_at" not in seen
    first, second = make_sweep(deployment), make_sweep(deployment)
    first.once()
    assert deployment.queued() == 0
    deployment.redis.zadd(Keys(deployment.settings.prefix).delayed, {job_id: 1})
    first.once()
    second.once()
    assert deployment.queued() == 1
    assert rq_status(deployment, job_id) == "queued"


def test_retries_are_spent_one_by_one_and_then_the_job_fails(deployment: Deployment, client: FlaskClient) -> None:
    """`retries=2` is three attempts; the last failure is the outcome."""
    job_id = submit(client, task="try_again_at_once", fail=True)
    work_off(deployment)
    seen = document(client, job_id)
    assert (seen["status"], seen["attempt"], seen["error"]["type"]) == ("failed", 3, "task-failed")


def test_what_was_taken_and_not_started_goes_back_to_the_head(
    deployment: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies between taking and starting loses nothing; order is kept."""
    first, second = submit(client, n=1), submit(client, n=2)
    queue = f"rq:queue:{deployment.queue}"
    deployment.redis.lmove(queue, f"{queue}:intermediate", "LEFT", "RIGHT")
    sweep = make_sweep(deployment)
    sweep.once()
    assert deployment.queued() == 1, "it may be a live worker's: one look is not enough"
    _pass_time(monkeypatch, 2.1)
    sweep.once()
    waiting: Any = deployment.redis.lrange(queue, 0, -1)
    assert [each.decode() for each in waiting] == [first, second]
    assert deployment.redis.llen(f"{queue}:intermediate") == 0


def test_an_entry_left_behind_by_an_ended_job_is_only_removed(
    deployment: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ's own clean-up would fail a job that is finished."""
    job_id = submit(client, n=4)
    work_off(deployment)
    deployment.redis.rpush(f"rq:queue:{deployment.queue}:intermediate", job_id)
    sweep = make_sweep(deployment)
    sweep.once()
    _pass_time(monkeypatch, 2.1)
    sweep.once()
    assert deployment.queued() == 0
    assert document(client, job_id)["status"] == "succeeded"
    assert deployment.redis.llen(f"rq:queue:{deployment.queue}:intermediate") == 0


def test_a_queue_emptied_by_hand_fails_its_jobs(deployment: Deployment, client: FlaskClient) -> None:
    """After `rq empty` nothing is queued for ever."""
    job_id = submit(client, n=5)
    deployment.redis.delete(f"rq:queue:{deployment.queue}", f"rq:job:{job_id}")
    sweep = make_sweep(deployment)
    sweep.once()
    assert document(client, job_id)["status"] == "queued"
    sweep.once()
    assert document(client, job_id)["error"]["type"] == "lost"


def test_a_job_whose_part_in_rq_cannot_be_read_is_lost_too(deployment: Deployment, client: FlaskClient) -> None:
    """What nobody can run must not say `running` for ever."""
    job_id = submit(client, n=1)
    take_and_vanish(deployment)
    deployment.redis.hset(f"rq:job:{job_id}", "created_at", "no date")
    make_sweep(deployment).once()
    assert document(client, job_id)["error"]["type"] == "lost"
    assert deployment.redis.exists(f"rq:job:{job_id}") == 0


def test_one_job_that_cannot_be_helped_does_not_keep_the_others_waiting(
    deployment: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What breaks is logged, and the next job is seen to."""
    first, second = submit(client, n=1), submit(client, n=2)
    take_and_vanish(deployment)
    take_and_vanish(deployment)
    sweep = make_sweep(deployment)
    held = sweep._recovery.held

    def broken(job_id: str) -> Held | None:
        if job_id == first:
            raise KeyError(job_id)
        return held(job_id)

    monkeypatch.setattr(sweep._recovery, "held", broken)
    sweep.once()
    assert document(client, first)["status"] == "running"
    assert document(client, second)["status"] == "failed"


def test_many_sweeps_at_once_make_one_end(deploy: Callable[..., Deployment]) -> None:
    """Every worker process sweeps; a lost job has one outcome and one webhook."""
    deployment = deploy()
    client = deployment.client()
    ids = [submit(client, n=n, callback_url="http://127.0.0.1:9/hook") for n in range(5)]
    for _ in ids:
        take_and_vanish(deployment)
    sweeps = [make_sweep(deployment) for _ in range(4)]
    looks = [sweep._recovery.look() for sweep in sweeps]
    for sweep, look in zip(sweeps, looks, strict=True):
        for job_id in look.lapsed:
            sweep._one(sweep._end_lapsed, job_id, look.now_ms)
    assert {document(client, each)["error"]["type"] for each in ids} == {"lost"}
    due: Any = deployment.redis.zcard(Keys(deployment.settings.prefix).due("127.0.0.1"))
    assert due == len(ids)


def _attempt(deployment: Deployment, client: FlaskClient, claim: Claim) -> JobAttempt:
    """An attempt in the hands of a worker that took the job long ago."""
    settings = deployment.settings
    jobs = Jobs(connect(settings.redis_url, for_worker=True), Keys(settings.prefix))
    attempt = JobAttempt(settings, Registry.load(settings.tasks), jobs, claim, host_of)
    found = jobs.find(claim.job_id).job
    assert found is not None
    attempt.hold(found, clock.now_ms())
    return attempt


def _pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    real = clock.monotonic_s
    monkeypatch.setattr("aj.worker.sweep.monotonic_s", lambda: real() + seconds)
