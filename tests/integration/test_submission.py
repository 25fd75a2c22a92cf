"""An accepted submission: what the 202 says, byte by byte, and that all of it is true at once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from flask.testing import FlaskClient

from aj import task
from tests.conftest import Deployment
from tests.support.jobs import document, submit
from tests.support.processes import running_api
from tests.support.task_modules import make_module

WAITING = {"status": "queued", "task": "square"}


def test_the_answer_to_a_submission_is_exact(client: FlaskClient) -> None:
    """202, a body of two members and no more, and the headers that tell the caller where and when to look."""
    answer = client.post("/jobs", json={"n": 5})
    job_id = json.loads(answer.data)["job_id"]
    assert answer.status_code == 202
    assert answer.data == b'{"job_id": "%s", "status": "queued"}' % job_id.encode()
    assert answer.content_type == "application/json"
    assert answer.headers["Location"] == f"/jobs/{job_id}"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Retry-After"].isdecimal()
    assert int(answer.headers["Retry-After"]) >= 1
    assert "Idempotent-Replayed" not in answer.headers


def test_a_job_id_is_a_uuid_of_version_7(client: FlaskClient) -> None:
    """An id tells when it was given and nothing else; it has 74 bits that nobody can guess."""
    job_id = uuid.UUID(submit(client, n=5))
    assert job_id.version == 7
    assert job_id.variant == uuid.RFC_4122


def test_equal_submissions_without_a_key_are_two_jobs(deployment: Deployment, client: FlaskClient) -> None:
    """Only a key makes two requests one."""
    assert submit(client, n=5) != submit(client, n=5)
    assert deployment.queued() == 2


def test_the_location_stands_below_the_mount_point(client: FlaskClient) -> None:
    """Behind a proxy that serves us below a path, the Location leads through the proxy again."""
    answer = client.post("/jobs", json={"n": 5}, environ_overrides={"SCRIPT_NAME": "/deep/down"})
    assert answer.headers["Location"].startswith("/deep/down/jobs/")


def test_the_location_never_repeats_the_host_header(client: FlaskClient) -> None:
    """A caller who lies about the host cannot send another one elsewhere through a cache."""
    answer = client.post("/jobs", json={"n": 5}, headers={"Host": "evil.example"})
    assert answer.headers["Location"].startswith("/jobs/")
    assert "evil" not in str(answer.headers)


def test_the_location_can_be_read_at_once_through_another_app(deployment: Deployment, client: FlaskClient) -> None:
    """There is no moment at which the caller holds an id that another process does not know."""
    other = deployment.client()
    for n in range(50):
        location = client.post("/jobs", json={"n": n}).headers["Location"]
        assert other.get(location).status_code == 200


def test_the_location_can_be_read_at_once_through_another_process(
    deployment: Deployment, client: FlaskClient, folder: Path
) -> None:
    """The same through gunicorn, and the other way round."""
    with running_api(deployment.env, folder) as (_, url):
        here = client.post("/jobs", json={"n": 5}).headers["Location"]
        there = requests.post(f"{url}/jobs", json={"n": 5}, timeout=5).headers["Location"]
        assert requests.get(url + here, timeout=5).json().items() >= WAITING.items()
        assert (client.get(there).json or {}).items() >= WAITING.items()


def test_what_makes_a_job_is_there_together(deployment: Deployment, client: FlaskClient) -> None:
    """Our hash, RQ's job, the queue entry and the record of the key."""
    job_id = submit(client, key="k", n=5)
    assert deployment.redis.exists(f"{deployment.settings.prefix}:job:{job_id}", f"rq:job:{job_id}") == 2
    assert deployment.redis.lrange(f"rq:queue:{deployment.queue}", 0, -1) == [job_id.encode()]
    assert len(deployment.keys("idem:*")) == 1


@pytest.mark.parametrize(
    "metadata",
    ['{"b": [1, 2.5, null, {"ü": "✓ 𝄞"}], "a": true}', "{}", '{"x": "%s"}' % ("y" * 4087)],
    ids=["nested", "empty", "of 4096 bytes"],
)
def test_metadata_comes_back_as_it_was_given(client: FlaskClient, metadata: str) -> None:
    """The caller's own words are kept as they are, up to 4 KiB."""
    answer = client.post("/jobs", data=f'{{"n": 5, "metadata": {metadata}}}', content_type="application/json")
    shown = client.get(answer.headers["Location"]).get_data(as_text=True)
    assert f'"metadata": {metadata}, "created_at"' in shown


def test_null_for_a_member_of_ours_means_absent(client: FlaskClient) -> None:
    """A client that always sends all members need not leave one out."""
    job = document(client, submit(client, n=5, task=None, callback_url=None, metadata=None))
    assert job.keys() == {"job_id", "status", "task", "created_at", "position"}
    assert job["task"] == "square"


def test_a_callback_is_shown_before_it_is_called(client: FlaskClient) -> None:
    """A job that has an address says that its webhook is pending, and does not show the address."""
    job = document(client, submit(client, n=5, callback_url="http://127.0.0.1:9/secret-path"))
    assert job["callback"] == {"state": "pending", "attempts": 0}
    assert "secret-path" not in json.dumps(job)


def test_a_task_is_chosen_by_its_name(client: FlaskClient) -> None:
    """`task` names another task than the default one, and its parameters are judged by that task."""
    assert document(client, submit(client, task="fail", text="x"))["task"] == "fail"


def test_the_default_task_is_the_first_of_the_first_module(
    deploy: Callable[..., Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order in which the modules are named and the tasks are defined decides, not the alphabet."""

    @task
    def zebra(n: int) -> int:
        return n

    @task
    def ant(n: int) -> int:
        return n

    @task
    def bee(n: int) -> int:
        return n

    first = make_module(monkeypatch, "tasks_z", zebra, ant)
    second = make_module(monkeypatch, "tasks_a", bee)
    client = deploy(AJ_TASKS=f"{first},{second}").client()
    assert document(client, submit(client, n=5))["task"] == "zebra"
    assert document(client, submit(client, n=5, task="bee"))["task"] == "bee"


def test_a_task_goes_to_the_queue_that_it_names(
    deploy: Callable[..., Deployment], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others go to the deployment's first queue."""

    @task
    def plain() -> None: ...

    @task(queue="q:slow-of-test")
    def slow() -> None: ...

    deployment = deploy(
        AJ_TASKS=make_module(monkeypatch, "tasks_q", plain, slow), AJ_QUEUES="q:fast-of-test,q:slow-of-test"
    )
    client = deployment.client()
    ids = [submit(client, task=name) for name in ("plain", "slow")]
    entries = [deployment.redis.lpop(f"rq:queue:q:{speed}-of-test", 2) for speed in ("fast", "slow")]
    assert entries == [[job_id.encode()] for job_id in ids]


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", None])
def test_json_is_taken_however_its_type_is_written(client: FlaskClient, content_type: str | None) -> None:
    """Parameters and case do not matter, and a missing Content-Type counts as JSON."""
    assert client.post("/jobs", data='{"n": 5}', content_type=content_type).status_code == 202


def test_a_body_of_just_the_limit_is_taken(deploy: Callable[..., Deployment]) -> None:
    """The limit is the last size that is allowed."""
    client = deploy(AJ_MAX_BODY_BYTES="100").client()
    assert client.post("/jobs", data=b'{"n": 5}'.ljust(100)).status_code == 202
