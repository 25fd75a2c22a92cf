"""A worker's desk: the next job is taken in the step that ends the last, and neither is lost or taken twice by that."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
import rq
import rq.utils
from flask.testing import FlaskClient
from rq.utils import utcformat

from aj.errors import StoreUnavailable
from aj.job import new_job_id
from aj.store import Books, connect
from aj.store.client import commands_of
from aj.store.ledger import note_start, note_success
from aj.store.rq_classes import Job, readable_job
from aj.worker import loop
from aj.worker.rq_worker import Run, Worker
from tests.conftest import Deployment
from tests.support.inside import rq_hash, rq_key, rq_leftovers, starts
from tests.support.jobs import document, submit
from tests.support.waiting import wait_until

NOWHERE = "redis://127.0.0.1:1/0"
AT = datetime(2026, 11, 29, 15, 0, 7, 500_000, tzinfo=UTC)


@pytest.fixture
def worker(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """One that has just looked at what is asked of it, and need not look again for an hour."""
    monkeypatch.setattr(loop, "LOOK_INTERVAL_S", 3600)
    worker = deployment.worker()
    worker.work_once()
    return worker


def in_queue(deployment: Deployment) -> list[str]:
    entries: Any = deployment.redis.lrange(f"rq:queue:{deployment.queue}", 0, -1)
    return [entry.decode() for entry in entries]


def after_the_first(worker: Worker, act: Callable[[], object]) -> list[str]:
    """Does something when the first job of the worker is about to run; gives the ids of the jobs that it runs."""
    ran, see_through = [], worker.see_through

    def seen(run: Run, *more: Any) -> Any:
        ran.append(run.taken.job.id)
        if len(ran) == 1:
            act()
        return see_through(run, *more)

    worker.see_through = seen  # type: ignore[method-assign,assignment]
    return ran


# -- one job after the other -----------------------------------------------------------------------------------


def test_all_that_wait_are_run_in_their_order(deployment: Deployment, client: FlaskClient, worker: Worker) -> None:
    """Whichever way they end, each of them once, and nothing of them stays under way."""
    members: list[dict[str, Any]] = [
        {"n": 2},
        {"task": "fail", "text": "x"},
        {"n": 3},
        {"task": "kill_itself"},
        {"n": 4},
    ]
    ids = [submit(client, **each) for each in members]
    ran = after_the_first(worker, lambda: None)
    assert worker.work_once(goes_on=True)
    assert ran == ids
    assert [document(client, each)["status"] for each in ids] == [
        "succeeded",
        "failed",
        "succeeded",
        "failed",
        "succeeded",
    ]
    assert [document(client, each)["attempt"] for each in ids] == [1] * 5
    assert rq_leftovers(deployment, *ids) == []


def test_a_worker_that_is_to_stop_takes_no_other_job(
    deployment: Deployment, client: FlaskClient, worker: Worker
) -> None:
    """The one under way comes to its end; the next one stays where it is."""
    ids = [submit(client, n=n) for n in range(2)]
    ran = after_the_first(worker, worker._stopping.set)
    worker.work_once(goes_on=True)
    assert (ran, in_queue(deployment)) == (ids[:1], ids[1:])
    assert document(client, ids[0])["status"] == "succeeded"


def test_a_worker_looks_each_second_whether_it_may_go_on(
    deployment: Deployment, client: FlaskClient, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many jobs wait: it may be suspended, and has to say that it lives."""
    ids = [submit(client, n=n) for n in range(3)]
    ran = after_the_first(worker, lambda: setattr(worker, "_next_look_s", 0.0))
    worker.work_once(goes_on=True)
    assert (ran, in_queue(deployment)) == (ids[:1], ids[1:])
    deployment.redis.set("rq:suspended", 1)
    try:
        monkeypatch.setattr(worker._stopping, "wait", lambda timeout: False)
        assert not worker.work_once(goes_on=True)
    finally:
        deployment.redis.delete("rq:suspended")
    assert in_queue(deployment) == ids[1:]


def test_what_is_not_plainly_a_job_to_be_run_does_not_harm_the_end_of_the_one_before(
    deployment: Deployment, client: FlaskClient, worker: Worker
) -> None:
    """It is left where it stands, and seen to as if it had been the first."""
    first, broken, last = (submit(client, n=n) for n in (2, 3, 4))
    deployment.redis.delete(rq_key(broken))
    deployment.redis.rpush(rq_key(broken), "no hash")
    worker.work_once(goes_on=True)
    assert (document(client, first)["result"], in_queue(deployment)) == (4, [broken, last])
    worker.work_once(goes_on=True)
    worker.work_once(goes_on=True)
    assert document(client, broken)["error"]["type"] == "task-unavailable"
    assert document(client, last)["result"] == 16


# -- answers that are lost -------------------------------------------------------------------------------------


def lose_one_answer(worker: Worker, script: str, meanwhile: Callable[[], object] = lambda: None) -> None:
    """The next call of the script is carried out, and its worker does not hear of it."""
    ask = getattr(worker._jobs, script)

    def carried_out(*words: Any) -> Any:
        setattr(worker._jobs, script, ask)
        ask(*words)
        meanwhile()
        raise StoreUnavailable("The answer is lost.")

    setattr(worker._jobs, script, carried_out)


@pytest.mark.parametrize("script", ["_take", "_finish"])
def test_a_job_whose_taking_was_not_heard_of_is_run_once(
    deployment: Deployment, client: FlaskClient, worker: Worker, script: str
) -> None:
    """The same is asked again, and what was taken is found; no other job is taken in its place."""
    ids = [submit(client, n=n) for n in range(3)]
    lose_one_answer(worker, script)
    ran = after_the_first(worker, lambda: None)
    worker.work_once(goes_on=True)
    assert ran == ids
    assert [document(client, each)["attempt"] for each in ids] == [1, 1, 1]
    assert rq_leftovers(deployment, *ids) == []


def test_a_step_that_arrives_too_late_takes_nothing(
    deployment: Deployment, client: FlaskClient, worker: Worker
) -> None:
    """The network held it back until its worker asked again, so nobody would run what it took."""
    ids, ask, held_back = [submit(client, n=n) for n in range(3)], worker._jobs._finish, []

    def hold_back(*words: Any) -> Any:
        worker._jobs._finish = ask
        held_back.append(words)
        raise StoreUnavailable("It has not arrived.")

    worker._jobs._finish = hold_back  # type: ignore[assignment]
    worker.work_once(goes_on=True)
    assert [document(client, each)["status"] for each in ids] == ["succeeded"] * 3
    last = submit(client, n=4)
    ask(*held_back[0])
    assert (document(client, last)["status"], in_queue(deployment)) == ("queued", [last])
    worker.work_once(goes_on=True)
    assert document(client, last)["attempt"] == 1


@pytest.mark.parametrize("meanwhile", ["told to stop", "the one before was deleted"])
def test_what_was_taken_without_an_answer_is_run_whatever_happens_meanwhile(
    client: FlaskClient, worker: Worker, meanwhile: str
) -> None:
    """It says `running`, and nobody else would run it."""
    ids = [submit(client, n=n) for n in range(3)]
    acts: dict[str, Callable[[], object]] = {
        "told to stop": worker._stopping.set,
        "the one before was deleted": lambda: client.delete(f"/jobs/{ids[0]}"),
    }
    lose_one_answer(worker, "_finish", acts[meanwhile])
    worker.work_once(goes_on=True)
    assert document(client, ids[1])["status"] == "succeeded"
    assert document(client, ids[2])["status"] == ("queued" if meanwhile == "told to stop" else "succeeded")


def test_a_failure_that_has_another_attempt_waits_for_a_store_that_is_away(
    client: FlaskClient, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ's part of the job is read for it, and no outcome is lost because that has to be asked for twice."""
    answers: Any = iter([redis.ConnectionError("away")])

    def read(*words: Any) -> Any:
        for error in answers:
            raise error
        return readable_job(*words)

    monkeypatch.setattr("aj.worker.rq_worker.readable_job", read)
    job_id = submit(client, task="try_again_at_once", fail=True)
    worker.work_once()
    seen = document(client, job_id)
    assert (seen["status"], seen["attempt"]) == ("queued", 1)
    worker.work_once()
    assert document(client, job_id)["attempt"] == 2


# -- RQ's books ------------------------------------------------------------------------------------------------


def test_rq_sees_the_worker_at_the_job_that_it_runs(
    deployment: Deployment, client: FlaskClient, worker: Worker, folder: Path
) -> None:
    """Busy with each of them in turn, and idle when none is left."""
    worker.register_birth()
    paths = [folder / name for name in ("a", "b")]
    ids = [submit(client, task="wait_for_file", path=str(path)) for path in paths]
    thread = threading.Thread(target=lambda: worker.work_once(goes_on=True))
    thread.start()
    for path, job_id in zip(paths, ids, strict=True):
        wait_until(lambda path=path: starts(path), what="a running job")  # type: ignore[misc]
        seen = rq.Worker.find_by_key(worker.key, connection=deployment.redis)
        assert seen is not None
        assert (seen.get_state(), seen.get_current_job_id()) == ("busy", job_id)
        assert rq_hash(deployment, job_id)[b"status"] == b"started"
        assert rq.Queue(deployment.queue, deployment.redis).started_job_registry.get_job_ids() == [job_id]
        path.touch()
    thread.join()
    seen = rq.Worker.find_by_key(worker.key, connection=deployment.redis)
    assert seen is not None
    assert (seen.get_state(), seen.get_current_job_id(), seen.successful_job_count) == ("idle", None, 2)
    worker.register_death()  # type: ignore[no-untyped-call]


def filled(template: str, stands_for: dict[str, str]) -> list[list[str]]:
    """A template as `books.lua` fills it."""

    def fill(mark: re.Match[str]) -> str:
        return stands_for[mark[1]] if mark[1] in stands_for else str(int(AT.timestamp()) + int(mark[1]))

    return [list(command) for command in json.loads(re.sub(r"<aj:(\w+)>", fill, template))]


def sent(*commands: tuple[Any, ...]) -> list[list[str]]:
    """Commands as the store reads them."""
    encode = connect(NOWHERE).get_encoder().encode
    return [[encode(word).decode() for word in command] for command in commands]  # type: ignore[no-untyped-call]


def test_what_is_filled_in_is_what_rq_would_have_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Word for word: when a job is taken, and when it succeeds."""
    client, job_id = connect(NOWHERE), new_job_id(1)
    books = Books(client, "q:x", "me.1", "rq:worker:me.1", 120)
    start, success = books.of_start(), books.of_success(70)
    monkeypatch.setattr(rq.utils, "now", lambda: AT)
    job = Job(job_id, client)
    job.origin = "q:x"
    with client.pipeline() as pipe:
        execution = note_start(pipe, job, "me.1", 120)
        fresh = sent(("HSET", "rq:worker:me.1", "state", "busy"), *commands_of(pipe))
    assert job.started_at is not None
    names = {"job": job_id, "execution": execution.id}
    began = repr(execution.created_at.timestamp())
    assert filled(start, {**names, "now": began, "at": utcformat(job.started_at)}) == fresh
    with client.pipeline() as pipe:
        pipe.hincrby("rq:worker:me.1", "successful_job_count", 1)
        note_success(pipe, job, execution, "me.1", 70)
        fresh = sent(*commands_of(pipe))
    assert job.ended_at is not None
    times = {"began": began, "now": repr(job.ended_at.timestamp()), "at": utcformat(job.ended_at)}
    assert filled(success, {**names, **times}) == fresh
