"""Submit: members of a body become one question to the store, or one refusal and no question."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import pytest
from pydantic import Field

import aj.clock
from aj import task
from aj.errors import AddressRefused, Invalid, KeyReused, QueueFull, StoreUnavailable
from aj.job import Submission, is_job_id
from aj.registry import Registry
from aj.settings import Settings
from aj.store import Answer, Jobs, Key, Place, Verdict
from aj.submit import METADATA_MAX_BYTES, Accepted, Submit

NOW_MS = 1_796_000_000_123
URL = "http://127.0.0.1:8141/hook"


@task
def square(n: int) -> int:
    return n * n


@task(name="slow.square", timeout_s=7, queue="q:slow")
def slow_square(n: Annotated[int, Field(le=9)], unit: str = "kg") -> int:
    return n * n


REGISTRY = Registry(vars(each)["__aj_task__"] for each in (square, slow_square))
SETTINGS = Settings(
    queues=("q:first", "q:slow"), job_timeout_s=60, result_ttl_s=100, idempotency_ttl_s=200, max_queued=3
)


@dataclass
class FakeJobs:
    """A store that answers with `verdict` and remembers what it was asked."""

    verdict: Verdict = Verdict.CREATED
    standing: str | None = None
    asked: list[tuple[str, Submission, Place, Key | None]] = field(default_factory=list)

    def submit(self, job_id: str, submission: Submission, place: Place, key: Key | None) -> Answer:
        self.asked.append((job_id, submission, place, key))
        return Answer(self.verdict, self.standing or job_id)


@pytest.fixture
def jobs() -> FakeJobs:
    return FakeJobs()


def accept_url(url: str) -> str:
    return "127.0.0.1:8141"


def refuse_url(url: str) -> str:
    raise AddressRefused("the host is loopback, which is not allowed")


def submitting(jobs: FakeJobs, check_url: Callable[[str], str] = accept_url) -> Submit:
    return Submit(SETTINGS, REGISTRY, cast(Jobs, jobs), check_url)


def refusals(submit: Submit, members: dict[str, Any]) -> dict[str, str]:
    """The details of a refusal, by pointer."""
    with pytest.raises(Invalid) as caught:
        submit(members, "key")
    return {each.pointer: each.detail for each in caught.value.errors}


def test_members_are_the_parameters_of_the_default_task(jobs: FakeJobs) -> None:
    """The first of the registry, on the first queue, with the deployment's limits."""
    submitting(jobs)({"n": 5}, None)
    [(_, submission, place, key)] = jobs.asked
    assert submission == Submission("square", {"n": 5})
    assert place == Place("q:first", 60, 100, 3)
    assert key is None


def test_a_task_may_be_named(jobs: FakeJobs) -> None:
    """It brings its own queue and time, and its defaults are filled in."""
    submitting(jobs)({"task": "slow.square", "n": 5}, None)
    [(_, submission, place, _)] = jobs.asked
    assert submission == Submission("slow.square", {"n": 5, "unit": "kg"})
    assert place == Place("q:slow", 7, 100, 3)


def test_each_submission_asks_with_a_fresh_id_of_now(jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a repeat: whether it is one only the store knows."""
    monkeypatch.setattr(aj.clock, "now_ms", lambda: NOW_MS)
    submit = submitting(jobs)
    accepted = [submit({"n": 5}, "key") for _ in range(3)]
    assert [each.job_id for each in accepted] == [asked[0] for asked in jobs.asked]
    assert len({each.job_id for each in accepted}) == 3
    assert all(is_job_id(each.job_id) for each in accepted)
    assert {each.job_id[:13] for each in accepted} == {f"{NOW_MS:012x}"[:8] + "-" + f"{NOW_MS:012x}"[8:]}


def test_a_key_goes_with_its_owner_and_its_life(jobs: FakeJobs) -> None:
    """As the caller wrote it; the store hashes it."""
    submitting(jobs)({"n": 5}, "key", "alice")
    submitting(jobs)({"n": 5}, "key")
    assert [asked[3] for asked in jobs.asked] == [Key("key", 200)] * 2
    assert [asked[1].owner for asked in jobs.asked] == ["alice", ""]


def test_a_replay_names_the_job_that_stands(jobs: FakeJobs) -> None:
    """Not the id that was thought of for this request."""
    jobs.verdict, jobs.standing = Verdict.REPLAYED, "0192f0c1-2345-7abc-8def-0123456789ab"
    accepted = submitting(jobs)({"n": 5}, "key")
    assert accepted == Accepted("0192f0c1-2345-7abc-8def-0123456789ab", replayed=True, result_ttl_s=100)


def test_a_new_job_is_no_replay(jobs: FakeJobs) -> None:
    """And has the id it was given."""
    accepted = submitting(jobs)({"n": 5}, "key")
    assert accepted == Accepted(jobs.asked[0][0], replayed=False, result_ttl_s=100)


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_trace_goes_with_the_submission_and_is_no_part_of_the_payload(jobs: FakeJobs) -> None:
    """A retry from another trace is the same submission."""
    submitting(jobs)({"n": 5}, "key", traceparent=TRACE)
    submitting(jobs)({"n": 5}, "key")
    [traced, plain] = [asked[1] for asked in jobs.asked]
    assert (traced.traceparent, plain.traceparent) == (TRACE, None)
    assert traced.fingerprint == plain.fingerprint


def test_what_is_accepted_is_a_line_for_whoever_listens(jobs: FakeJobs, caplog: pytest.LogCaptureFixture) -> None:
    """Its fields stand in the record, where the formatter of a host app finds them; what is refused is no line."""
    with caplog.at_level(logging.INFO, "aj.submit"):
        submitting(jobs)({"n": 5}, None, "alice", TRACE)
        with pytest.raises(Invalid):
            submitting(jobs)({"n": "5"}, None)
    [record] = caplog.records
    job_id = jobs.asked[0][0]
    assert record.getMessage() == f"job {job_id}: accepted"
    expected = {"job_id": job_id, "task": "square", "owner": "alice", "replayed": False, "traceparent": TRACE}
    assert vars(record).items() >= expected.items()


def test_a_replay_is_a_line_that_says_so(jobs: FakeJobs, caplog: pytest.LogCaptureFixture) -> None:
    """About the job that stands."""
    jobs.verdict, jobs.standing = Verdict.REPLAYED, "0192f0c1-2345-7abc-8def-0123456789ab"
    with caplog.at_level(logging.INFO, "aj.submit"):
        submitting(jobs)({"n": 5}, "key")
    [record] = caplog.records
    assert record.getMessage() == f"job {jobs.standing}: replayed"
    assert vars(record)["replayed"] is True
    assert "owner" not in vars(record)


def test_a_key_for_another_payload_is_refused(jobs: FakeJobs) -> None:
    """Without a word about the payload that stands, which may be another client's."""
    jobs.verdict, jobs.standing = Verdict.MISMATCH, "0192f0c1-2345-7abc-8def-0123456789ab"
    with pytest.raises(KeyReused) as caught:
        submitting(jobs)({"n": 5}, "key")
    assert "0192f0c1" not in caught.value.detail


def test_a_full_queue_is_refused_with_its_bound(jobs: FakeJobs) -> None:
    """The number that was reached."""
    jobs.verdict = Verdict.FULL
    with pytest.raises(QueueFull, match="3 jobs are waiting"):
        submitting(jobs)({"n": 5}, None)


def test_a_store_that_is_away_comes_through(jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the problem that it is."""

    def away(*_: object) -> Answer:
        raise StoreUnavailable("away")

    monkeypatch.setattr(FakeJobs, "submit", away)
    with pytest.raises(StoreUnavailable):
        submitting(jobs)({"n": 5}, None)


@pytest.mark.parametrize("name", ["", "Square", "square ", "os.system", "__class__", 5, True, [], {}, ["square"]])
def test_an_unknown_task_is_refused_with_those_that_are_known(jobs: FakeJobs, name: Any) -> None:
    """Whatever stands there, and without asking the store."""
    assert refusals(submitting(jobs), {"task": name, "n": 5}) == {"#/task": "must be one of: square, slow.square"}
    assert jobs.asked == []


@pytest.mark.parametrize(
    ("members", "pointers"),
    [
        ({}, {"#/n"}),
        ({"n": "5"}, {"#/n"}),
        ({"n": True}, {"#/n"}),
        ({"n": 5.0}, {"#/n"}),
        ({"n": None}, {"#/n"}),
        ({"n": 5, "m": 1}, {"#/m"}),
        ({"n": 5, "Task": "square"}, {"#/Task"}),
        ({"n": 5, "callback-url": URL}, {"#/callback-url"}),
        ({"task": "slow.square", "n": 10, "unit": 5}, {"#/n", "#/unit"}),
        ({"n": 5, "metadata": [], "callback_url": 5}, {"#/metadata", "#/callback_url"}),
        ({"m": 1, "metadata": "x", "callback_url": []}, {"#/n", "#/m", "#/metadata", "#/callback_url"}),
    ],
)
def test_all_that_is_wrong_is_named_at_once(jobs: FakeJobs, members: dict[str, Any], pointers: set[str]) -> None:
    """And the store is not asked, so that no key is used up."""
    assert refusals(submitting(jobs), members).keys() == pointers
    assert jobs.asked == []


def test_null_for_a_name_of_ours_means_absent(jobs: FakeJobs) -> None:
    """The same payload as without, to the last bit of its fingerprint."""
    submit = submitting(jobs, refuse_url)
    submit({"n": 5}, None)
    submit({"n": 5, "task": None, "callback_url": None, "metadata": None}, None)
    submit({"n": 5, "task": "square"}, None)
    assert len({submission.fingerprint for _, submission, _, _ in jobs.asked}) == 1


def test_a_default_left_out_is_the_same_payload(jobs: FakeJobs) -> None:
    """As validated, and not as written."""
    submit = submitting(jobs)
    submit({"task": "slow.square", "n": 5}, None)
    submit({"unit": "kg", "n": 5, "task": "slow.square"}, None)
    first, second = (submission.fingerprint for _, submission, _, _ in jobs.asked)
    assert first == second


def test_callback_and_metadata_are_part_of_the_submission(jobs: FakeJobs) -> None:
    """As they were given."""
    submitting(jobs)({"n": 5, "callback_url": URL, "metadata": {"a": [1, 1.0]}}, None)
    assert jobs.asked[0][1] == Submission("square", {"n": 5}, URL, {"a": [1, 1.0]})


@pytest.mark.parametrize("url", [5, True, False, 0, [], {}, [URL]])
def test_a_callback_that_is_no_text_is_refused_unjudged(jobs: FakeJobs, url: Any) -> None:
    """Only null means absent."""
    assert refusals(submitting(jobs, refuse_url), {"n": 5, "callback_url": url}) == {
        "#/callback_url": "must be a string"
    }


@pytest.mark.parametrize("url", ["", "x", URL])
def test_a_callback_that_may_not_be_called_is_refused_with_the_rule(jobs: FakeJobs, url: str) -> None:
    """In the words of the judge."""
    assert refusals(submitting(jobs, refuse_url), {"n": 5, "callback_url": url}) == {
        "#/callback_url": "the host is loopback, which is not allowed"
    }
    assert jobs.asked == []


@pytest.mark.parametrize("metadata", ["x", 5, True, False, 0, "", [], [{}]])
def test_metadata_that_is_no_object_is_refused(jobs: FakeJobs, metadata: Any) -> None:
    """Only null means absent."""
    assert refusals(submitting(jobs), {"n": 5, "metadata": metadata}) == {"#/metadata": "must be an object"}


def test_empty_metadata_is_metadata(jobs: FakeJobs) -> None:
    """An object with nothing in it, and not the same as none."""
    submitting(jobs)({"n": 5, "metadata": {}}, None)
    assert jobs.asked[0][1].metadata == {}


@pytest.mark.parametrize("character", ["x", "é", "😀"])
def test_the_limit_of_metadata_is_exact(jobs: FakeJobs, character: str) -> None:
    """4 KiB of JSON in UTF-8, counted without the white space that JSON does not need."""
    room = METADATA_MAX_BYTES - len('{"a":"","b":""}')
    size = len(character.encode())
    fitting = {"a": character * (room // size), "b": "x" * (room % size)}
    assert METADATA_MAX_BYTES == 4096
    submitting(jobs)({"n": 5, "metadata": fitting}, None)
    over = {**fitting, "b": fitting["b"] + "x"}
    assert refusals(submitting(jobs), {"n": 5, "metadata": over}) == {
        "#/metadata": "is 4097 bytes of JSON; the limit is 4096"
    }


def test_the_members_are_left_as_they_were(jobs: FakeJobs) -> None:
    """The caller's value is the caller's."""
    members = {"n": 5, "task": "slow.square", "metadata": {"a": 1}}
    submitting(jobs)(members, None)
    assert members == {"n": 5, "task": "slow.square", "metadata": {"a": 1}}
