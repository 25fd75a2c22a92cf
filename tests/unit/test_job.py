"""A job as its caller sees it: ids, outcomes, the document, the fingerprint of a submission."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from aj.job import (
    NEXT,
    Callback,
    CallbackState,
    ErrorType,
    Job,
    Outcome,
    Status,
    Submission,
    to_json,
)

JOB_ID = "0192f0c1-2345-7abc-8def-0123456789ab"
CREATED_MS = 1_796_000_000_123
QUEUED = Job(JOB_ID, Status.QUEUED, "square", CREATED_MS)
RUNNING = replace(QUEUED, status=Status.RUNNING, started_ms=CREATED_MS + 877, attempt=1)
BASE = Submission("square", {"n": 5})


def document(job: Job) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(job.document())
    return read


# -- states and outcomes -----------------------------------------------------------------------------------


def test_final_are_succeeded_and_failed() -> None:
    """And from these no move is legal."""
    assert {each for each in Status if each.is_final} == {Status.SUCCEEDED, Status.FAILED}
    assert NEXT[Status.QUEUED] == {Status.RUNNING}
    assert NEXT[Status.RUNNING] == {Status.QUEUED, Status.SUCCEEDED, Status.FAILED}
    assert not NEXT[Status.SUCCEEDED] | NEXT[Status.FAILED]


@pytest.mark.parametrize("kind", ErrorType)
def test_a_failure_says_type_title_and_detail(kind: ErrorType) -> None:
    """For each type of the contract, with a title of its own."""
    outcome = Outcome.failed(kind, "grün ✓")
    error = json.loads(outcome.body)
    assert outcome.status is Status.FAILED
    assert list(error) == ["type", "title", "detail"]
    assert (error["type"], error["detail"]) == (kind.value, "grün ✓")
    assert error["title"]


def test_the_types_of_errors_are_those_of_the_contract() -> None:
    """Callers compare them as text."""
    named = "task-failed timed-out lost cancelled result-invalid result-too-large task-unavailable"
    assert [each.value for each in ErrorType] == named.split()


# -- the document ------------------------------------------------------------------------------------------


def test_the_document_of_a_queued_job() -> None:
    """Byte for byte."""
    assert QUEUED.document() == (
        b'{"job_id": "0192f0c1-2345-7abc-8def-0123456789ab", "status": "queued", "task": "square",'
        b' "created_at": "2026-11-30T00:53:20.123Z"}'
    )


def test_the_document_of_a_running_job() -> None:
    """Byte for byte, with everything that may stand in it."""
    job = replace(
        RUNNING,
        metadata=b'{"order": 7}',
        progress=b'{"fraction": 0.5, "message": "half"}',
        callback_url="http://127.0.0.1:8141/hook?token=hunter2",
        callback=Callback(CallbackState.PENDING),
    )
    assert job.document() == (
        b'{"job_id": "0192f0c1-2345-7abc-8def-0123456789ab", "status": "running", "task": "square",'
        b' "metadata": {"order": 7}, "created_at": "2026-11-30T00:53:20.123Z",'
        b' "started_at": "2026-11-30T00:53:21.000Z", "attempt": 1,'
        b' "progress": {"fraction": 0.5, "message": "half"}, "callback": {"state": "pending", "attempts": 0}}'
    )


def test_the_document_of_a_succeeded_job() -> None:
    """Byte for byte; it expires when the life of its result is over."""
    job = RUNNING.ended(Outcome.succeeded(b"25"), CREATED_MS + 1000, result_ttl_s=3600)
    assert job.document() == (
        b'{"job_id": "0192f0c1-2345-7abc-8def-0123456789ab", "status": "succeeded", "task": "square",'
        b' "created_at": "2026-11-30T00:53:20.123Z", "started_at": "2026-11-30T00:53:21.000Z",'
        b' "ended_at": "2026-11-30T00:53:21.123Z", "expires_at": "2026-11-30T01:53:21.123Z",'
        b' "attempt": 1, "result": 25}'
    )


def test_the_document_of_a_failed_job() -> None:
    """Byte for byte."""
    job = RUNNING.ended(Outcome.failed(ErrorType.LOST, "It died."), CREATED_MS + 1000, result_ttl_s=3600)
    assert job.document() == (
        b'{"job_id": "0192f0c1-2345-7abc-8def-0123456789ab", "status": "failed", "task": "square",'
        b' "created_at": "2026-11-30T00:53:20.123Z", "started_at": "2026-11-30T00:53:21.000Z",'
        b' "ended_at": "2026-11-30T00:53:21.123Z", "expires_at": "2026-11-30T01:53:21.123Z", "attempt": 1,'
        b' "error": {"type": "lost", "title": "The worker died while the task ran", "detail": "It died."}}'
    )


@pytest.mark.parametrize("result", [None, 0, False, "", [], {}, 0.0, "null", [None]])
def test_a_result_is_there_exactly_when_the_job_succeeded(result: Any) -> None:
    """Also where it is nothing, and then no `error` stands beside it."""
    shown = document(RUNNING.ended(Outcome.succeeded(to_json(result)), CREATED_MS, 60))
    assert "result" in shown
    assert shown["result"] == result
    assert type(shown["result"]) is type(result)
    assert "error" not in shown


@pytest.mark.parametrize("kind", ErrorType)
def test_an_error_is_there_exactly_when_the_job_failed(kind: ErrorType) -> None:
    """And then no `result` stands beside it."""
    shown = document(RUNNING.ended(Outcome.failed(kind, ""), CREATED_MS, 60))
    assert shown["error"]["type"] == kind
    assert "result" not in shown


@pytest.mark.parametrize("job", [QUEUED, RUNNING])
def test_before_the_end_there_is_no_outcome_and_no_end(job: Job) -> None:
    """Neither value nor time."""
    assert not {"result", "error", "ended_at", "expires_at"} & document(job).keys()


@pytest.mark.parametrize("ms", [0, 1, 10, 100, 999, 1000, CREATED_MS])
def test_times_are_rfc_3339_in_utc_with_milliseconds(ms: int) -> None:
    """Every time of the document, also where the milliseconds are few."""
    job = replace(QUEUED, created_ms=ms, started_ms=ms, ended_ms=ms, expires_ms=ms)
    shown = document(job)
    for name in ("created_at", "started_at", "ended_at", "expires_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown[name])
        assert shown[name].endswith(f".{ms % 1000:03d}Z")


def test_a_callback_shows_what_came_back_and_what_comes_next() -> None:
    """The last status and the next attempt, where there is one."""
    callback = Callback(CallbackState.PENDING, 2, 503, CREATED_MS)
    assert json.loads(callback.json()) == {
        "state": "pending",
        "attempts": 2,
        "last_status": 503,
        "next_attempt_at": "2026-11-30T00:53:20.123Z",
    }


def test_the_callback_address_is_not_shown() -> None:
    """It may hold a token of the caller's."""
    job = replace(QUEUED, callback_url="http://h/?token=hunter2", callback=Callback(CallbackState.GONE, 1, 410))
    assert b"hunter2" not in job.document()


def test_stored_json_is_served_as_it_stands() -> None:
    """A result is not read again, so that spacing and digits of its writer stay."""
    result = b'{"a":1.10,  "b":123456789012345678901234567890}'
    assert result in RUNNING.ended(Outcome.succeeded(result), CREATED_MS, 60).document()


# -- JSON --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "\ud800", {"\udfff": 1}, [10**5000]])
def test_what_json_cannot_say_is_a_value_error(value: Any) -> None:
    """Not a document that other readers refuse."""
    with pytest.raises(ValueError):
        to_json(value)


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, 1j, {(1, 2): 3}])
def test_what_is_no_json_type_is_a_type_error(value: Any) -> None:
    """Nothing is turned into text on the quiet."""
    with pytest.raises(TypeError):
        to_json(value)


def test_json_is_utf_8_and_not_escapes() -> None:
    """A text in any script takes as many bytes as it should."""
    assert to_json("grün ✓ 😀") == '"grün ✓ 😀"'.encode()


# -- the fingerprint ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Submission("t", {"a": 1, "b": 2}), Submission("t", {"b": 2, "a": 1})),
        (Submission("t", {"a": {"x": 1, "y": [2]}}), Submission("t", {"a": {"y": [2], "x": 1}})),
        (Submission("t", {}, None, {"a": 1, "b": 2}), Submission("t", {}, None, {"b": 2, "a": 1})),
        (Submission("t", {"é": "😀"}), Submission("t", json.loads('{ "\\u00e9" : "\\ud83d\\ude00" }'))),
        (Submission("t", {"x": 100.0}), Submission("t", json.loads('{"x": 1e2}'))),
    ],
)
def test_one_payload_has_one_fingerprint(left: Submission, right: Submission) -> None:
    """Whatever the order of members, the white space and the escapes it was written with."""
    assert left.fingerprint == right.fingerprint


DIFFERENT = [
    BASE,
    replace(BASE, task="cube"),
    replace(BASE, params={}),
    replace(BASE, params={"n": 6}),
    replace(BASE, params={"n": 5.0}),
    replace(BASE, params={"n": "5"}),
    replace(BASE, params={"n": [5]}),
    replace(BASE, params={"n": None}),
    replace(BASE, params={"n": True}),
    replace(BASE, params={"n": 1}),
    replace(BASE, params={"n": 1.0}),
    replace(BASE, params={"n": "true"}),
    replace(BASE, params={"m": 5}),
    replace(BASE, params={"n": 5, "m": None}),
    replace(BASE, params={"n": [1, 2]}),
    replace(BASE, params={"n": [2, 1]}),
    replace(BASE, callback_url="http://a/"),
    replace(BASE, callback_url="http://a/?"),
    replace(BASE, callback_url="null"),
    replace(BASE, metadata={}),
    replace(BASE, metadata={"n": 5}),
    replace(BASE, metadata={"n": None}),
    Submission("square", {"n": "é"}),
    Submission("square", {"n": "e\u0301"}),
]


def test_every_real_difference_shows_in_the_fingerprint() -> None:
    """Task, parameters, their types, the address and the metadata."""
    assert len({each.fingerprint for each in DIFFERENT}) == len(DIFFERENT)


def test_a_fingerprint_stays_what_it_is() -> None:
    """Keys outlive a deployment: another digest in the next version would refuse every repeat."""
    assert BASE.fingerprint == "f7e67cba086da533bd0244dd3ea21703b6d802e21be94e1882d73e7ed8c20834"
