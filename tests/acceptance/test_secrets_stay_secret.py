"""A small real deployment is given marked values and made to fail in every way; then all that it said is searched.

What a job was given, where its webhook goes, its key and the deployment's own secrets are told to nobody. Its
metadata and its result are told to whoever has its id, and to its receiver; an exception's own text to the log of
the worker, whose developer wrote it.
"""

from __future__ import annotations

import logging

import pytest
import requests

from aj.errors import DeliveryFailed
from tests.acceptance.marked_run import (
    ARGUMENT,
    BROKEN_HEADERS,
    KEY,
    METADATA,
    NEVER,
    PASSWORD,
    QUERY,
    RESULT,
    SECRETS,
    TEXT,
    Evidence,
    run_with_marks,
)
from tests.unit import egress_receivers


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """The run, once for all tests of this file."""
    return run_with_marks(tmp_path_factory.mktemp("secrets"))


def test_the_run_was_what_it_should_be(evidence: Evidence) -> None:
    """Every way to end and every fault of a receiver was met; else the search below proves nothing."""
    ends = {name: (each["status"], each.get("error", {}).get("type")) for name, each in evidence.documents().items()}
    assert ends["works"] == ("succeeded", None)
    wanted = ("task-failed", "task-failed", "timed-out", "lost", "result-invalid", "result-too-large")
    names = ("fail", "fail_twice", "take_too_long", "die", "give_no_json", "give_too_much")
    assert tuple(ends[name][1] for name in names) == wanted
    assert (ends["old"][1], ends["garbage"][1]) == ("task-unavailable",) * 2
    states = {name: each["callback"]["state"] for name, each in evidence.documents().items() if "callback" in each}
    assert (states.pop("works"), states.pop("fail")) == ("delivered", "delivered")
    assert {name for name, state in states.items() if state == "exhausted"} >= {"failing receiver", "no TLS", "nobody"}
    assert "job_id" in evidence.logs["receipts"]
    assert "Traceback" in evidence.logs["worker"]
    assert "Traceback" in evidence.logs["api"]


@pytest.mark.parametrize("word", [*NEVER, METADATA, RESULT])
def test_no_log_holds_what_a_job_was_given_or_a_secret(evidence: Evidence, word: str) -> None:
    """Nor what processes print that are told wrong settings, nor `ps`."""
    assert [name for name, text in evidence.logs.items() if word in text] == []
    assert word not in evidence.commands


@pytest.mark.parametrize("word", [*NEVER, METADATA, RESULT, TEXT])
def test_rq_info_and_the_names_of_keys_hold_none_of_it(evidence: Evidence, word: str) -> None:
    """What an operator sees at a glance."""
    assert "q:jobs2" in evidence.rq_info
    assert word not in evidence.rq_info
    assert word not in evidence.key_names


@pytest.mark.parametrize("word", [*NEVER, TEXT])
def test_no_answer_holds_it(evidence: Evidence, word: str) -> None:
    """Neither documents nor problems: an exception's text stays with the developer, too."""
    assert [each.text for each in evidence.answers if word in each.text or word in str(each.headers)] == []


@pytest.mark.parametrize("word", [METADATA, RESULT])
def test_metadata_and_result_are_told_only_in_the_document(evidence: Evidence, word: str) -> None:
    """To whoever has the id, and to the receiver."""
    holding = [each for each in evidence.answers if word in each.text]
    assert holding
    assert {each.status_code for each in holding} == {200}
    assert any(word.encode() in each.body for each in evidence.webhooks)


@pytest.mark.parametrize("word", [*NEVER, TEXT])
def test_a_webhook_holds_no_more_than_the_document(evidence: Evidence, word: str) -> None:
    """Only the receiver's own address stands in the request line that goes to it."""
    assert evidence.webhooks
    for each in evidence.webhooks:
        assert word.encode() not in each.body
        assert word not in str(each.headers)


@pytest.mark.parametrize("word", [KEY, PASSWORD, TEXT, *SECRETS])
def test_the_store_holds_no_key_no_secret_and_no_exception(evidence: Evidence, word: str) -> None:
    """A key is hashed before it is stored. Arguments and addresses are there, since somebody has to use them."""
    assert ARGUMENT in evidence.stored
    assert word not in evidence.stored


def test_the_text_of_an_exception_is_in_the_log_of_the_worker(evidence: Evidence) -> None:
    """The developer wrote it for the developer."""
    assert TEXT in evidence.logs["worker"]
    assert [name for name, text in evidence.logs.items() if TEXT in text] == ["worker"]


@pytest.mark.parametrize(
    "answer", [BROKEN_HEADERS, b"HTTP/1.1 200 OK\r\n\r\n", b"nonsense\r\n\r\n"], ids=["headers", "ok", "no"]
)
def test_libraries_say_nothing_of_an_exchange(caplog: pytest.LogCaptureFixture, answer: bytes) -> None:
    """urllib3 would log the whole URL and what the receiver sent; what it says of others' requests is left alone."""
    with caplog.at_level(logging.DEBUG), egress_receivers.receiving(egress_receivers.answering(answer)) as receiver:
        try:
            egress_receivers.loopback_egress().post(f"{receiver.url}?{QUERY}", {}, b"{}")
        except DeliveryFailed as failed:
            assert QUERY not in str(failed)  # noqa: PT017 - both ends are right here
        assert caplog.records == []
        if answer.startswith(b"HTTP"):
            requests.get(receiver.url, timeout=5)
            assert caplog.records
