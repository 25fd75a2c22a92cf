"""What is sent again, when, and what is said when that did not help."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aj.client import ApiError, Client, NotUnderstood, Unreachable, transport
from tests.support.scripted_server import answer, scripted

ID = "01a22875-8ab0-7b86-a00f-efef3fad16ff"
QUEUED = {"job_id": ID, "status": "queued"}
ACCEPTED = answer(202, QUEUED, Location=f"/jobs/{ID}", Retry_After="1")
DONE = {"job_id": ID, "status": "succeeded", "result": 25}
FULL = {
    "type": "urn:problem-type:aj:queue-full",
    "title": "The queue is full",
    "status": 503,
    "detail": "1000 jobs wait.",
}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which are not made."""
    made: list[float] = []
    monkeypatch.setattr(transport, "pause", made.append)
    return made


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_a_submission_is_repeated_with_the_same_key(pauses: list[float], status: int) -> None:
    """After each status that passes, and after no answer."""
    with scripted(answer(status), b"", ACCEPTED) as server:
        assert Client(server.url).submit(n=5).id == ID
    first, second, third = server.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"] == third.headers["idempotency-key"]
    assert first.body == second.body == third.body == b'{"n": 5}'
    assert 0.05 <= pauses[0] <= 0.1
    assert 0.1 <= pauses[1] <= 0.2


def test_each_submission_has_a_key_of_its_own() -> None:
    """In the form of the draft; one that is given is sent."""
    with scripted(ACCEPTED) as server:
        client = Client(server.url)
        client.submit(n=5)
        client.submit(n=5)
        client.submit(n=5, idempotency_key='order"17\\')
    keys = [each.headers["idempotency-key"] for each in server.asked]
    assert len(set(keys)) == 3
    assert all(len(json.loads(key)) == 36 for key in keys[:2])
    assert keys[2] == r'"order\"17\\"'


def test_a_submission_may_be_held() -> None:
    """One request brings the outcome then, and nothing is asked after it."""
    with scripted(answer(200, DONE, Location=f"/jobs/{ID}", Preference_Applied="wait=5")) as server:
        job = Client(server.url).submit(n=5, wait_s=5)
        assert (job.result(), job.url) == (25, f"{server.url}/jobs/{ID}")
    assert [each.headers.get("prefer") for each in server.asked] == ["wait=5"]


def test_a_submission_that_broke_while_it_was_held_is_repeated_without(pauses: list[float]) -> None:
    """With the same key: perhaps somebody between does not let it be held."""
    with scripted(b"", ACCEPTED) as server:
        assert Client(server.url).submit(n=5, wait_s=5).status == "queued"
    assert [each.headers.get("prefer") for each in server.asked] == ["wait=5", None]
    assert server.asked[0].headers["idempotency-key"] == server.asked[1].headers["idempotency-key"]
    assert len(pauses) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_the_retry_after_of_a_refusal_is_obeyed(pauses: list[float], status: int) -> None:
    """Anew at each, and a little more by chance."""
    refusals = [answer(status, Retry_After="4"), answer(status, Retry_After="9")]
    with scripted(*refusals, ACCEPTED) as server:
        Client(server.url).submit(n=5)
    assert 4 <= pauses[0] <= 4.4
    assert 9 <= pauses[1] <= 9.9


def test_who_is_asked_to_stay_away_too_long_hears_so_at_once(pauses: list[float]) -> None:
    """With the answer, and with the key that makes it safe to come back."""
    with scripted(answer(503, FULL, Retry_After="60")) as server, pytest.raises(Unreachable) as caught:
        Client(server.url, timeout_s=30).submit(n=5)
    assert pauses == []
    assert caught.value.last is not None
    assert (caught.value.last.status, caught.value.last.slug) == (503, "queue-full")
    assert caught.value.idempotency_key == json.loads(server.asked[0].headers["idempotency-key"])
    assert f"idempotency_key='{caught.value.idempotency_key}'" in str(caught.value)
    assert "1000 jobs wait." in str(caught.value)


def test_the_time_of_a_submission_may_be_its_own() -> None:
    """Refused connections are tried again until it is over."""
    with scripted(b"") as server, pytest.raises(Unreachable, match=r"\d attempts") as caught:
        Client(server.url).submit(n=5, timeout_s=0.4)
    assert caught.value.last is None
    assert len(server.asked) > 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 500, 501, 520])
def test_every_other_refusal_is_final(pauses: list[float], status: int) -> None:
    """Asked for once."""
    with (
        scripted(answer(status, {"detail": "No."})) as server,
        pytest.raises(ApiError, match=f"{status}: No.") as caught,
    ):
        Client(server.url).submit(n=5)
    assert type(caught.value) is ApiError
    assert (caught.value.status, caught.value.type, caught.value.slug) == (status, "about:blank", "")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "body", [b"<html>Bad Gateway</html>", b"", b"[]", b"{", b'{"detail": 5, "errors": {}}', b"\xff"]
)
def test_a_refusal_need_not_be_a_problem_document(body: bytes) -> None:
    """A proxy has its own words."""
    with scripted(answer(403, body)) as server, pytest.raises(ApiError) as caught:
        Client(server.url).submit(n=5)
    assert caught.value.status == 403
    assert caught.value.errors == []


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"[]", b"null", b"[" * 100_000, b"", b"\xff\xfe"])
def test_a_yes_that_is_no_json_object_is_not_understood(body: bytes) -> None:
    """Such as the page of a portal."""
    with scripted(answer(200, body, Content_Type="text/html")) as server:
        with pytest.raises(NotUnderstood, match="text/html"):
            Client(server.url).submit(n=5)
        with pytest.raises(NotUnderstood):
            Client(server.url).tasks()


def test_an_acceptance_without_location_is_found_by_its_id() -> None:
    """And one with neither is not understood."""
    with scripted(answer(202, QUEUED), answer(202, {"status": "queued"})) as server:
        client = Client(server.url)
        assert client.submit(n=5).url == f"{server.url}/jobs/{ID}"
        with pytest.raises(NotUnderstood, match="leads nowhere"):
            client.submit(n=5)


def test_looking_cancelling_and_deleting_are_repeated(pauses: list[float]) -> None:
    """They are idempotent by contract."""
    for act in ("refresh", "cancel", "delete", "deliveries"):
        with scripted(b"", answer(502), answer(200, {**DONE, "attempts": []})) as server:
            getattr(Client(server.url).job(ID), act)()
            assert len(server.asked) == 3


@pytest.mark.parametrize("reply", [b"", answer(502), answer(504)])
def test_sending_a_webhook_again_is_not(reply: bytes) -> None:
    """It is not idempotent: whether it happened is for the caller to find out."""
    with scripted(reply) as server, pytest.raises(Unreachable, match="1 attempt"):
        Client(server.url).job(ID).redeliver()
    assert len(server.asked) == 1


def test_unless_the_server_says_that_it_did_nothing(pauses: list[float]) -> None:
    """429 and 503."""
    with scripted(answer(503), answer(429), answer(202, QUEUED)) as server:
        Client(server.url).job(ID).redeliver()
    assert [(each.method, each.path) for each in server.asked] == [("POST", f"/jobs/{ID}/deliveries")] * 3


@pytest.mark.parametrize(
    ("body", "members"), [({"n": float("nan")}, {}), ({"n": object()}, {}), ({"n": 5}, {"n": 5}), ({"n": {1, 2}}, {})]
)
def test_members_that_are_no_json_are_an_error_of_python(body: dict[str, Any], members: dict[str, Any]) -> None:
    """Before anything is sent."""
    with pytest.raises((TypeError, ValueError), match=r"^(n cannot be sent as JSON: .+|given twice: n)"):
        Client("http://host").submit(body, **members)


def test_members_with_names_that_are_taken_go_by_the_mapping() -> None:
    """So that a task may have any parameter."""
    with scripted(ACCEPTED) as server:
        Client(server.url).submit({"timeout_s": 1, "idempotency_key": "x", "self": 2, "body": 3}, task="t")
    assert json.loads(server.asked[0].body) == {
        "timeout_s": 1,
        "idempotency_key": "x",
        "self": 2,
        "body": 3,
        "task": "t",
    }


@pytest.mark.parametrize("named", ["..", "http://evil.example/x", "\x1b", "", 7, None])
def test_an_acceptance_that_does_not_say_where_the_job_is_is_not_understood(named: object) -> None:
    """It may have been accepted: that is no mistake of the caller's. Neither is such an id in a list."""
    accepted = answer(202, {"job_id": named, "status": "queued"}, Location="")
    with scripted(accepted, answer(200, {"jobs": [{"job_id": named, "status": "queued"}]})) as server:
        with pytest.raises(NotUnderstood, match="leads nowhere"):
            Client(server.url).submit(n=5)
        with pytest.raises(NotUnderstood, match="leads nowhere"):
            list(Client(server.url).jobs())


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_in_json_is_not_understood(number: str) -> None:
    """Whoever writes it again would write what nobody can read."""
    body = f'{{"job_id": "{ID}", "status": "succeeded", "result": {number}}}'.encode()
    with scripted(answer(200, body)) as server, pytest.raises(NotUnderstood):
        Client(server.url).job(ID).refresh()


def test_the_document_of_another_job_is_not_taken() -> None:
    """Where the job was asked for by its id, also at the first look."""
    other = {**DONE, "job_id": "01a22875-8ab0-7b86-a00f-efef3fad16f0"}
    with scripted(answer(200, other)) as server, pytest.raises(NotUnderstood, match="another job"):
        Client(server.url).job(ID).result()


def test_a_list_of_empty_pages_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where each names another next one."""
    monkeypatch.setattr("aj.client.api.EMPTY_PAGES_MOST", 3)
    pages = [answer(200, {"jobs": []}, Link=f"</jobs?cursor={at}>; rel=next") for at in range(9)]
    with scripted(*pages) as server, pytest.raises(NotUnderstood, match="without a job"):
        list(Client(server.url).jobs())
    assert len(server.asked) == 4


def test_each_attempt_that_is_made_again_is_told(pauses: list[float]) -> None:
    """Where it asks, what it met and how long it goes on; what is not repeated is raised instead."""
    told: list[str] = []
    with scripted(answer(503, FULL), b"", ACCEPTED) as server:
        Client(server.url, timeout_s=20, on_trouble=told.append).submit(n=5)
    assert len(told) == 2
    assert told[0].startswith(f"POST {server.url}/jobs: 503: 1000 jobs wait.; it is tried again for ")
    assert told[0].endswith(" s more")


@pytest.mark.parametrize("status", [404, 405])
def test_another_place_of_the_server_is_told_with_its_address(status: int) -> None:
    """The prefix was forgotten; a problem document of an API has words of its own."""
    with scripted(answer(status, b"<h1>Lost?</h1>", Content_Type="text/html")) as server:
        with pytest.raises(ApiError, match="is it mounted below a prefix") as caught:
            Client(server.url).submit(n=5)
        assert f"POST {server.url}/jobs" in str(caught.value)
    with scripted(answer(404, {"type": "urn:problem-type:aj:job-unknown", "detail": "No job."})) as server:
        with pytest.raises(ApiError, match="No job") as caught:
            Client(server.url).job(ID).refresh()
        assert "prefix" not in str(caught.value)


UNREADY = {"type": "urn:problem-type:aj:not-ready", "detail": "workers: no worker is alive for q:jobs2"}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answer(200, {"status": "ready"}), ""),
        (answer(503, UNREADY), UNREADY["detail"]),
        (answer(503, FULL), None),
        (answer(404, b"<h1>Lost?</h1>"), None),
    ],
)
def test_an_api_is_asked_once_what_it_lacks(reply: bytes, said: str | None) -> None:
    """Not ready is an answer here, and no trouble that passes."""
    with scripted(reply) as server:
        assert Client(server.url).unready_because() == said
    assert [each.path for each in server.asked] == ["/readyz"]


def test_an_api_that_does_not_answer_says_nothing_of_itself() -> None:
    """It may later."""
    with scripted(b"") as server, pytest.raises(Unreachable, match="/readyz"):
        Client(server.url).unready_because()
