"""The errors of the client by themselves: into a pickle and out of it, with the key of a submission, of whose mouth."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import aj.cli.terminal
import aj.client.webhook  # noqa: F401 - all errors of these rooms
from aj.client import ApiError, Client, ClientError, JobFailed, JobGone, JobTimeout, JobUnknown, NotUnderstood
from aj.errors import AjError, FieldError, Invalid, RateExceeded, TaskError
from tests.support.scripted_server import answer, scripted

ID = "01a22875-8ab0-7b86-a00f-efef3fad16ff"
FAILED = {"job_id": ID, "status": "failed", "error": {"type": "task-failed", "detail": "TaskError: no"}}
PAGE = b"<html>default backend - 404</html>"


def kinds(of: type[AjError]) -> list[type[AjError]]:
    return [of, *(each for below in of.__subclasses__() if below.__module__.startswith("aj.") for each in kinds(below))]


def seen(error: AjError) -> tuple[Any, ...]:
    """All that can be seen of an error; a job by what is known of it."""
    told = {
        name: (value.url, value.document, value.retry_after_s) if name == "job" else value
        for name, value in vars(error).items()
        if name != "last"
    }
    return type(error), str(error), error.args, told


@pytest.mark.parametrize("kind", kinds(AjError), ids=lambda kind: kind.__name__)
def test_every_error_comes_out_of_a_pickle_as_it_went_in(kind: type[AjError]) -> None:
    """Whatever its class asks for when it is made."""
    error = kind.__new__(kind, "a text")
    vars(error).update(detail="more", problem={"type": "x"}, retry_after_s=5)
    if issubclass(kind, JobFailed | JobTimeout) or kind.__name__ == "_AboutJob":
        vars(error)["job"] = Client("http://host").job(ID)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert seen(again) == seen(error)


class OfAnApp(TaskError):
    """As somebody may write it who uses `aj`."""

    def __init__(self, album: str, *, missing: int) -> None:
        super().__init__(f"{missing} pictures of {album} are missing")
        self.missing = missing


def test_so_do_those_that_are_made_in_the_usual_way() -> None:
    """By their own words, also those of a class that is not ours."""
    for error in (
        OfAnApp("summer", missing=3),
        Invalid("no", (FieldError("#/n", "no"),)),
        RateExceeded("no", 5, {"RateLimit": "x"}),
        ApiError(422, {"detail": "no", "errors": [{"pointer": "#/n", "detail": "no"}]}, ""),
    ):
        assert seen(pickle.loads(pickle.dumps(error))) == seen(error)


def _fail(url: str, status: int) -> None:
    client = Client(url, api_key="aj_secret")
    if status == 200:
        client.job(ID).result()
    client.submit(n=5)


def test_a_pool_of_processes_hands_on_what_was_raised_in_it() -> None:
    """And goes on. A job comes without its client, since nobody looks for an API key in an error."""
    context = multiprocessing.get_context("spawn")
    replies = (answer(200, FAILED), answer(422, {"detail": "No."}))
    with scripted(*replies) as server, ProcessPoolExecutor(1, mp_context=context) as pool:
        failed, refused = (pool.submit(_fail, server.url, status).exception(60) for status in (200, 422))
    assert isinstance(failed, JobFailed)
    assert (failed.type, failed.job.url, failed.job.document) == ("task-failed", f"{server.url}/jobs/{ID}", FAILED)
    assert b"aj_secret" not in pickle.dumps(failed)
    with pytest.raises(ClientError, match=rf"without its client.* job\('{server.url}/jobs/{ID}'\)"):
        failed.job.refresh()
    assert isinstance(refused, ApiError)
    assert (refused.status, refused.detail) == (422, "No.")


@pytest.mark.parametrize(
    "reply",
    [
        *(answer(status, PAGE, Content_Type="text/html") for status in (200, 302, 407, 500, 520, 524)),
        answer(500, {"detail": "No."}),
        answer(202, {"job_id": ID, "status": "paused"}, Location=f"/jobs/{ID}"),
    ],
)
def test_a_submission_whose_fate_is_not_known_keeps_its_key(reply: bytes) -> None:
    """Whoever answered: the job may have been accepted before."""
    with scripted(reply) as server, pytest.raises(ApiError, match="is not known, and idempotency_key='") as caught:
        Client(server.url).submit(n=5)
    assert caught.value.idempotency_key == json.loads(server.asked[0].headers["idempotency-key"])
    assert f"{caught.value.idempotency_key}" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).idempotency_key == caught.value.idempotency_key


@pytest.mark.parametrize("status", [400, 404, 409, 422])
def test_one_that_is_refused_needs_none(status: int) -> None:
    """No job came of it."""
    with (
        scripted(answer(status, {"detail": "No."})) as server,
        pytest.raises(ApiError, match=f"^{status}: No.$") as caught,
    ):
        Client(server.url).submit(n=5)
    assert caught.value.idempotency_key is None


@pytest.mark.parametrize(("status", "kind"), [(404, JobUnknown), (410, JobGone)])
def test_only_the_api_says_that_a_job_is_not_there(status: int, kind: type[ApiError]) -> None:
    """By a JSON object of whatever type. The page of a proxy that has lost its way says nothing of the job."""
    for of_api in (
        answer(status, {"title": "Gone"}),
        answer(status, {}),
        answer(status, {}, Content_Type="text/plain"),
    ):
        with scripted(of_api) as server, pytest.raises(kind):
            Client(server.url).job(ID).refresh()
    for of_proxy in (answer(status, PAGE, Content_Type="text/html"), answer(status), answer(status, [])):
        with scripted(of_proxy) as server, pytest.raises(NotUnderstood, match="no JSON object") as caught:
            Client(server.url).job(ID).refresh()
        assert caught.value.status == status


def test_a_proxy_that_asks_who_asks_is_not_the_api() -> None:
    """Whatever the form of its answer."""
    with scripted(answer(407, {"detail": "Who are you?"})) as server, pytest.raises(NotUnderstood, match="a proxy"):
        Client(server.url).tasks()
