"""`aj.client` against real processes: what a job brings, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from aj.client import ApiError, Client, Job, JobFailed, JobGone, JobTimeout, JobUnknown
from aj.local.embedded import ServerProcess
from tests.support.processes import running_api, running_worker

NOBODY = "01a22875-8ab0-7b86-a00f-efef3fad16ff"


@pytest.fixture(scope="module")
def env(store: ServerProcess) -> dict[str, str]:
    return {
        "AJ_REDIS_URL": store.url,
        "AJ_PREFIX": "client",
        "AJ_QUEUES": "q:client",
        "AJ_TASKS": "tests.support.tasks",
        "AJ_WEB_THREADS": "32",
    }


@pytest.fixture(scope="module")
def client(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of gunicorn, with a worker behind it."""
    folder = tmp_path_factory.mktemp("client")
    with running_api(env, folder) as (_, url), running_worker(env, folder), Client(url) as made:
        yield made


def test_a_job_gives_its_result(client: Client) -> None:
    """Submitted, waited for, had."""
    job = client.submit(n=5)
    assert (job.status, job.done) == ("queued", False)
    assert job.retry_after_s == 1
    assert job.result() == 25
    ended = client.job(job.url).wait()
    assert (ended.status, ended.done, ended.retry_after_s) == ("succeeded", True, None)


def test_a_job_is_picked_up_by_its_url(client: Client) -> None:
    """By its whole URL, its path or its id, in any process."""
    job = client.submit(n=6)
    for name in (job.url, job.url.partition("/jobs")[1] + job.url.partition("/jobs")[2], job.id):
        again = client.job(name)
        assert (again.url, again.id, again.status) == (job.url, job.id, "")
        assert again.result() == 36


def test_every_result_comes_as_it_is(client: Client) -> None:
    """Also one that is nothing, and one that is large."""
    wanted = {"null": None, "zero": 0, "false": False, "empty": "", "text": "grün ✓"}
    jobs = {name: client.submit(task="give", value=name) for name in wanted}
    large = client.submit(task="give_bytes", size=200_000)
    assert {name: job.result() for name, job in jobs.items()} == wanted
    assert large.result() == "x" * 200_000


def test_a_job_that_fails_is_an_exception_that_says_why(client: Client) -> None:
    """`wait` does not raise it, `result` does."""
    job = client.submit(task="fail", text="no such album", public=True)
    assert job.wait().status == "failed"
    with pytest.raises(JobFailed, match="task-failed: TaskError: no such album") as caught:
        job.result()
    assert caught.value.job is job
    assert caught.value.type == "task-failed"


def test_a_wait_that_is_over_leaves_the_job_alone(client: Client, folder: Path) -> None:
    """JobTimeout; then the job goes on, and its end is heard of at once."""
    gate = folder / "gate"
    job = client.submit(task="wait_for_file", path=str(gate))
    with pytest.raises(JobTimeout) as caught:
        job.wait(timeout_s=1.5)
    assert caught.value.job is job
    assert job.status == "running"
    gate.write_text("open")
    assert job.wait().status == "succeeded"


def test_progress_is_told_as_it_comes(client: Client) -> None:
    """Each document once, the end included."""
    seen: list[dict[str, Any]] = []

    def note(job: Job) -> None:
        seen.append(job.document)

    job = client.submit(task="report", fractions=[0.25, 0.5])
    assert job.wait(on_progress=note) is job
    assert seen[-1]["status"] == "succeeded"
    assert all(one != other for one, other in pairwise(seen))


def test_a_job_is_cancelled_and_deleted_as_often_as_one_likes(client: Client, folder: Path) -> None:
    """Both may be asked for again; a deleted job is gone."""
    job = client.submit(task="wait_for_file", path=str(folder / "never"))
    assert job.cancel().document["error"]["type"] == "cancelled"
    assert job.cancel().status == "failed"
    job.delete()
    job.delete()
    with pytest.raises(JobGone) as caught:
        job.refresh()
    assert caught.value.expired_at is not None
    with pytest.raises(JobGone):
        client.job(job.id).wait()


def test_what_is_refused_says_why(client: Client) -> None:
    """The problem document, by its parts; and 404 has a class of its own."""
    with pytest.raises(ApiError, match="#/n Input should be a valid integer") as caught:
        client.submit(n="five")
    assert (caught.value.status, caught.value.slug) == (422, "invalid-submission")
    assert caught.value.errors[0]["pointer"] == "#/n"
    with pytest.raises(JobUnknown):
        client.job(NOBODY).result()
    with pytest.raises(ApiError) as conflict:
        client.submit(n=1).wait().cancel()
    assert conflict.value.slug == "already-ended"


def test_one_key_is_one_job(client: Client) -> None:
    """Whatever the key holds."""
    key = 'order "17" \\'.replace(" ", "-")
    assert client.submit(n=7, idempotency_key=key).id == client.submit({"n": 7}, idempotency_key=key).id


def test_jobs_are_listed_over_pages_and_their_results_fetched(client: Client) -> None:
    """A list has no outcomes, and a job of it knows that."""
    made = [client.submit(n=n) for n in range(60)]
    made[-1].wait()
    found = list(client.jobs(status="succeeded", task="square"))
    assert {job.id for job in made} <= {job.id for job in found}
    assert "result" not in found[0].document
    assert found[0].result() == 59 * 59


def test_tasks_are_listed(client: Client) -> None:
    """As `GET /tasks` has them."""
    assert [each["name"] for each in client.tasks()][:2] == ["square", "give"]
