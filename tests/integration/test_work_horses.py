"""Work-horses: a process that runs many jobs, and of which no job notices anything but its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.worker import stall
from aj.worker.rq_worker import Worker
from tests.conftest import Deployment
from tests.support.inside import is_alive
from tests.support.jobs import document, submit
from tests.support.waiting import wait_until


@pytest.fixture
def horses(deploy: Callable[..., Deployment]) -> Deployment:
    return deploy(AJ_TASKS="tests.support.tasks_in_horses", AJ_MAX_RESULT_BYTES=str(32 * 2**20))


@pytest.fixture
def client(horses: Deployment) -> FlaskClient:
    return horses.client()


@pytest.fixture
def worker(horses: Deployment) -> Iterator[Worker]:
    worker = horses.worker()
    yield worker
    worker.dismiss_horses()


def ran(worker: Worker, client: FlaskClient, task: str, **members: Any) -> dict[str, Any]:
    """The document of a job that the worker has run."""
    job_id = submit(client, task=task, **members)
    assert worker.work_once()
    return document(client, job_id)


def pid_of(worker: Worker) -> int:
    assert worker._stable.at_work is not None
    return worker._stable.at_work.pid


def test_one_process_runs_job_after_job(worker: Worker, client: FlaskClient) -> None:
    """It is not the worker, and it goes when it is dismissed."""
    pids = {ran(worker, client, "pid")["result"] for _ in range(5)}
    assert pids == {pid_of(worker)}
    assert os.getpid() not in pids
    worker.dismiss_horses()
    assert not is_alive(pids.pop())


@pytest.mark.parametrize(("jobs_per_horse", "processes"), [("1", 6), ("3", 2), ("100", 1)])
def test_it_is_replaced_after_as_many_jobs_as_it_may_run(
    horses: Deployment, client: FlaskClient, jobs_per_horse: str, processes: int
) -> None:
    """1 is a process for each job."""
    worker = horses.worker(AJ_JOBS_PER_HORSE=jobs_per_horse)
    pids = {ran(worker, client, "pid")["result"] for _ in range(6)}
    worker.dismiss_horses()
    assert len(pids) == processes
    assert not [pid for pid in pids if is_alive(pid)]


@pytest.mark.parametrize("dies", [False, True])
def test_the_next_one_is_ready_when_the_last_run_ends(horses: Deployment, client: FlaskClient, dies: bool) -> None:
    """It was started meanwhile; one that has died since then costs nothing, and the one before is gone."""
    worker = horses.worker(AJ_JOBS_PER_HORSE="1")
    first = ran(worker, client, "pid")["result"]
    ready = worker._stable._next
    assert ready is not None
    if dies:
        os.kill(ready.pid, signal.SIGKILL)
    second = ran(worker, client, "pid")["result"]
    assert (second == ready.pid) is not dies
    assert not is_alive(first)
    worker.dismiss_horses()
    assert not is_alive(second)


def test_it_is_replaced_when_it_has_grown(worker: Worker, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that leaks does not fill the machine."""
    monkeypatch.setattr(stall, "GROWTH_MOST_BYTES", 64 * 2**20)
    first = ran(worker, client, "grow", mebibytes=8)["result"]
    assert ran(worker, client, "grow", mebibytes=100)["result"] == first
    assert ran(worker, client, "grow", mebibytes=8)["result"] != first
    assert not is_alive(first)


def test_what_a_job_notes_in_its_context_is_gone_with_it(worker: Worker, client: FlaskClient) -> None:
    """As if each had a process of its own."""
    assert [ran(worker, client, "note", text=text)["result"] for text in ("a", "b")] == ["", ""]


def test_threads_that_a_job_leaves_behind_report_for_no_other(worker: Worker, client: FlaskClient) -> None:
    """And tear nothing of what the next job says."""
    horse = ran(worker, client, "leave_threads_that_report", mark="a")["result"]
    for _ in range(5):
        after = ran(worker, client, "give_much", mebibytes=1)
        assert after["result"] == "x" * 2**20
        assert "progress" not in after
    assert ran(worker, client, "end_the_threads")["result"] == horse


def test_threads_of_one_job_may_report_at_once(worker: Worker, client: FlaskClient) -> None:
    """Its result is whole."""
    document = ran(worker, client, "report_from_threads")
    assert document["result"] == "z" * 900_000
    assert document["progress"]["message"] in ("x" * 150, "y" * 150)


@pytest.mark.parametrize(
    "text",
    [b"some text that is no message", bytes(64), b"p" + (4).to_bytes(8, "big") + b"1\n{x"],
    ids=["no frame", "no kind", "no JSON"],
)
def test_one_that_says_what_cannot_be_understood_is_ended(worker: Worker, client: FlaskClient, text: bytes) -> None:
    """At once, and not when its job's time is over."""
    assert ran(worker, client, "write_into_the_line", text=text.hex())["error"]["type"] == "lost"
    assert ran(worker, client, "pid")["result"] == pid_of(worker)


@pytest.mark.parametrize("stream", ["none", "raises", "exits"])
def test_a_stream_that_cannot_be_flushed_costs_no_outcome(worker: Worker, client: FlaskClient, stream: str) -> None:
    """A process that was started without one has None, and a task may put anything there."""
    horse = ran(worker, client, "replace_streams", stream=stream)["result"]
    assert horse == ran(worker, client, "pid")["result"] == pid_of(worker)


def test_a_killed_one_costs_its_own_job_only(worker: Worker, client: FlaskClient) -> None:
    """The next job has another one; what was reported before stands."""
    died = ran(worker, client, "report_and_die")
    assert (died["error"]["type"], died["progress"]["fraction"]) == ("lost", 0.5)
    assert ran(worker, client, "pid")["result"] == pid_of(worker)


def test_one_that_dies_while_it_has_nothing_to_do_costs_nothing(worker: Worker, client: FlaskClient) -> None:
    """An order that it never began is another's, and it is the same attempt."""
    first = ran(worker, client, "pid")["result"]
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not is_alive(first), what="its death")
    document = ran(worker, client, "pid")
    assert (document["status"], document["attempt"]) == ("succeeded", 1)
    assert document["result"] != first


def test_an_order_that_was_not_begun_is_given_to_another_one(
    worker: Worker, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died between two looks at it: the worker thinks that it lives."""
    first = ran(worker, client, "pid")["result"]
    horse = worker._stable.at_work
    assert horse is not None
    answers = iter([True])
    monkeypatch.setattr(horse, "is_fit", lambda most_runs: next(answers, False))
    os.kill(first, signal.SIGKILL)
    assert ran(worker, client, "pid")["result"] not in (first, None)


def test_a_process_that_a_task_forks_runs_no_jobs(worker: Worker, client: FlaskClient) -> None:
    """It comes back from the task as well, and would take the next order, or tell of an end of its own."""
    horse = ran(worker, client, "fork_and_return")["result"]
    assert horse == pid_of(worker)
    assert [ran(worker, client, "pid")["result"] for _ in range(10)] == [horse] * 10


@pytest.mark.parametrize("mebibytes", [1, 20])
def test_a_large_result_comes_through(worker: Worker, client: FlaskClient, mebibytes: int) -> None:
    """Byte for byte."""
    assert ran(worker, client, "give_much", mebibytes=mebibytes)["result"] == "x" * mebibytes * 2**20


def test_a_task_that_closes_every_file_loses_its_own_job(worker: Worker, client: FlaskClient) -> None:
    """Nobody can hear how it ended."""
    assert ran(worker, client, "close_all_files")["error"]["type"] == "lost"
    assert ran(worker, client, "pid")["result"] == pid_of(worker)


def test_a_task_that_closes_every_file_and_runs_on_is_still_watched(
    horses: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until its time is over."""
    monkeypatch.setattr("aj.worker.rq_worker.KILL_GRACE_S", 0)
    worker = horses.worker()
    late = horses.client(AJ_JOB_TIMEOUT_S="1")
    assert ran(worker, late, "close_all_files_and_go_on")["error"]["type"] == "timed-out"
    worker.dismiss_horses()


def test_one_that_has_left_its_process_group_is_ended_too(
    horses: Deployment, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its worker is not, whose group it has joined."""
    monkeypatch.setattr("aj.worker.rq_worker.KILL_GRACE_S", 0)
    worker = horses.worker()
    late = horses.client(AJ_JOB_TIMEOUT_S="1")
    assert ran(worker, late, "leave_the_group_and_hold_off_signals")["error"]["type"] == "timed-out"
    assert ran(worker, client, "pid")["result"] == pid_of(worker)
    worker.dismiss_horses()


def test_a_job_starts_where_the_first_one_did(worker: Worker, client: FlaskClient) -> None:
    """In the same directory, with the same umask, and no signal is blocked."""
    first = ran(worker, client, "tell_bearings")["result"]
    horse = ran(worker, client, "lose_bearings")["result"]
    assert ran(worker, client, "tell_bearings")["result"] == first
    assert horse == pid_of(worker)


@pytest.mark.parametrize("timer", ["ITIMER_PROF", "ITIMER_VIRTUAL"])
def test_a_timer_that_a_job_has_left_strikes_no_other(worker: Worker, client: FlaskClient, timer: str) -> None:
    """It would end the process."""
    horse = ran(worker, client, "leave_a_timer", timer=timer)["result"]
    assert ran(worker, client, "burn", cpu_s=0.3)["result"] == horse


def test_an_alarm_that_a_task_held_off_is_gone_with_it(worker: Worker, client: FlaskClient) -> None:
    """Its job is late; the next one has a whole alarm of its own."""
    late = ran(worker, client, "hold_off_the_alarm")
    assert late["error"]["type"] == "timed-out"
    assert ran(worker, client, "hang")["error"]["type"] == "timed-out"
    assert ran(worker, client, "pid")["result"] == pid_of(worker)


def test_a_time_that_is_over_leaves_the_next_job_alone(worker: Worker, client: FlaskClient) -> None:
    """The alarm, the handlers and the deadline are each job's own, whatever a task does to them."""
    assert ran(worker, client, "hang")["error"]["type"] == "timed-out"
    assert ran(worker, client, "break_signals")["status"] == "succeeded"
    assert ran(worker, client, "hang")["error"]["type"] == "timed-out"
    assert ran(worker, client, "pid")["result"] == pid_of(worker)


def test_a_worker_that_is_gone_leaves_no_work_horse(horses: Deployment, client: FlaskClient) -> None:
    """Also one that nobody dismissed."""
    worker = horses.worker()
    pid = ran(worker, client, "pid")["result"]
    horse = worker._stable.at_work
    assert horse is not None
    with closing(horse._line):
        wait_until(lambda: is_alive(pid), what="a living one")
    wait_until(lambda: not is_alive(pid), what="its end")
    worker.dismiss_horses()
