"""`aj.client` against real processes: what a job brings, however it ends."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from aj.client import ApiError, Client, Job, JobFailed, JobGone, JobTimeout, JobUnknown, verify
from aj.local.embedded import ServerProcess
from tests.support.processes import running_api, running_worker
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

SECRET = "whsec_" + "bmV3ZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"
API_KEY = "aj_of_the_tests"
NOBODY = "01a22875-8ab0-7b86-a00f-efef3fad16ff"


@pytest.fixture(scope="module")
def env(store: ServerProcess) -> dict[str, str]:
    return {
        "AJ_REDIS_URL": store.url,
        "AJ_PREFIX": "client",
        "AJ_QUEUES": "q:client",
        "AJ_TASKS": "tests.support.tasks,tests.support.tasks_in_steps",
        "AJ_CALLBACK_ALLOW": "127.0.0.0/8",
        "AJ_WEBHOOK_SECRETS": SECRET,
        "AJ_API_KEYS": f"tests:{hashlib.sha256(API_KEY.encode()).hexdigest()}",
    }


@pytest.fixture(scope="module")
def client(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of gunicorn, with a worker behind it."""
    folder = tmp_path_factory.mktemp("client")
    with running_api(env, folder) as (_, url), running_worker(env, folder), Client(url, api_key=API_KEY) as made:
        yield made


def test_a_job_gives_its_result(client: Client) -> None:
    """Submitted, waited for, had."""
    job = client.submit(n=5)
    assert (job.status, job.done) == ("queued", False)
    assert job.retry_after_s == 1
    assert job.result() == 25
    ended = client.job(job.url).wait()
    assert (ended.status, ended.done, ended.retry_after_s) == ("succeeded", True, None)


def test_a_quick_job_comes_back_with_its_result(client: Client) -> None:
    """Where its submission may be held."""
    job = client.submit(n=7, wait_s=20)
    assert (job.status, job.result()) == ("succeeded", 49)


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


class Noting(requests.Session):
    """Notes of each request what it asked of the server, and what the server did about it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str | None, bool, int, str | None]] = []

    def request(self, *given: Any, **named: Any) -> requests.Response:
        answer, asked = super().request(*given, **named), named["headers"]
        applied = answer.headers.get("Preference-Applied")
        self.seen.append((asked.get("Prefer"), "If-None-Match" in asked, answer.status_code, applied))
        return answer


def test_progress_is_told_as_it_comes(client: Client, folder: Path) -> None:
    """Each step once, by a request that the server held until it came."""
    job, session = client.submit(task="go_in_steps", folder=str(folder), steps=3), Noting()
    seen: list[Any] = []

    def note(job: Job) -> None:
        seen.append(job.document.get("result", job.progress))
        if job.progress and not job.done:
            (folder / str(len(seen))).touch()

    wait_until(lambda: job.refresh().progress, what="the first step")
    watched = Client(job.url.partition("/jobs/")[0], api_key=API_KEY, session=session).job(job.url)
    assert watched.wait(on_progress=note) is watched
    assert seen == [{"fraction": 0.1}, {"fraction": 0.2}, {"fraction": 0.3}, 3]
    held = ("wait=30", True, 200, "wait=30")
    assert session.seen == [("wait=0", False, 200, "wait=0"), held, held, held]


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


def test_a_webhook_is_verified_looked_at_and_sent_again(client: Client, receiver: Receiver) -> None:
    """What our own deliverer signs, twice."""
    job = client.submit(n=8, callback_url=receiver.url(), metadata={"order": 17})
    wait_until(job.deliveries, what="an attempt")
    job.redeliver()
    wait_until(lambda: len(receiver.received) == 2, what="the second message")
    for got in receiver.received:
        told = verify(got.headers, got.body, [SECRET])
        assert (told["type"], told["job_id"], told["result"]) == ("job.succeeded", job.id, 64)
        assert told["metadata"] == {"order": 17}
    assert [each["status"] for each in wait_until(lambda: job.deliveries()[1:], what="its record")] == [200]
    with pytest.raises(ApiError) as caught:
        client.submit(n=1).redeliver()
    assert caught.value.slug == "not-possible"


def test_without_the_key_nothing_is_answered(client: Client) -> None:
    """401, and the problem says what to send."""
    url = client.submit(n=1).url
    with pytest.raises(ApiError, match="API key") as caught:
        Client(url.partition("/jobs/")[0]).job(url).refresh()
    assert caught.value.status == 401


def test_threads_share_a_client(client: Client) -> None:
    """Each hears of its own job."""
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: client.submit(n=n).result(), range(40))) == [n * n for n in range(40)]


def test_a_fork_goes_on_with_the_client(client: Client) -> None:
    """On connections of its own, while the parent uses those that there were."""
    job = client.submit(n=9).wait()

    def look(numbers: Any) -> None:
        numbers.put([client.job(job.url).refresh().document["result"] for _ in range(20)])

    context = multiprocessing.get_context("fork")
    numbers = context.SimpleQueue()
    child = context.Process(target=look, args=(numbers,))
    child.start()
    assert [client.submit(n=n).done for n in range(20)] == [False] * 20
    child.join(30)
    assert child.exitcode == 0
    assert numbers.get() == [81] * 20
