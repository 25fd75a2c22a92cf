"""When a job is looked at: on a clock that a test moves, with answers that a test writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from requests.structures import CaseInsensitiveDict

from aj import clock
from aj.client import Job, JobFailed, JobGone, JobTimeout, NotUnderstood, Unreachable, job, transport
from aj.client.address import Base
from aj.client.call import Answer, Call, NoAnswer
from aj.client.pacing import Deadline
from aj.client.transport import Transport

ID = "01a22875-8ab0-7b86-a00f-efef3fad16ff"
URL = f"http://host/jobs/{ID}"
QUEUED: dict[str, Any] = {"job_id": ID, "status": "queued"}
RUNNING: dict[str, Any] = {"job_id": ID, "status": "running"}
DONE: dict[str, Any] = {"job_id": ID, "status": "succeeded", "result": None}
TIMEOUT_S = 30.0


class World:
    """An exchange that gives the answers it is told, and a clock that goes on as they take time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        self.answers: list[tuple[int, Any, dict[str, str], float]] = []
        self.asked: list[tuple[float, Call]] = []
        monkeypatch.setattr(clock, "monotonic_s", lambda: self.now_s)
        for module in (job, transport):
            monkeypatch.setattr(module, "pause", self.pause)
        self.transport = Transport(Base("http://host"), self, TIMEOUT_S)  # type: ignore[arg-type]
        self.job = Job(self.transport, URL)

    def pause(self, pause_s: float) -> None:
        assert pause_s >= 0
        self.now_s += pause_s

    def will(self, status: int, document: Any = None, took_s: float = 0.0, **fields: str) -> None:
        """The next answer; status 0 is none at all, and -1 none for ever."""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        self.answers.append((status, document, named, took_s))

    def ask(self, call: Call, deadline: Deadline) -> Answer:
        self.asked.append((round(self.now_s - 1000, 1), call))
        status, document, fields, took_s = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.now_s += min(took_s, deadline.left_s())
        if status < 1:
            raise NoAnswer("cut off", may_heal=status == 0)
        body = b"" if document is None else json.dumps(document).encode()
        return Answer(call, status, CaseInsensitiveDict(fields), body, None, took_s)

    @property
    def times(self) -> list[float]:
        return [at_s for at_s, _ in self.asked]

    @property
    def holds(self) -> list[int | None]:
        return [call.hold_s for _, call in self.asked]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def accepted(world: World, retry_after: str) -> Job:
    """A job that was just accepted, as `submit` makes it."""
    call = Call("POST", "http://host/jobs")
    world.job.take(Answer(call, 202, {"Retry-After": retry_after}, json.dumps(QUEUED).encode(), None, 0.0))
    return world.job


def test_the_retry_after_of_the_acceptance_counts_for_the_first_look(world: World) -> None:
    """Nothing is asked before."""
    world.will(200, DONE)
    assert accepted(world, "4").wait().done
    assert world.times == [4.0]


def test_time_that_went_by_elsewhere_counts(world: World) -> None:
    """Who did something else meanwhile need not wait again."""
    accepted(world, "4")
    world.now_s += 60
    world.will(200, DONE)
    world.job.wait()
    assert world.times == [60.0]


def test_each_answer_says_anew_when_to_ask_again(world: World) -> None:
    """A server that does not hold requests is asked as often as it wants to be."""
    for seconds in ("5", "2", "9"):
        world.will(200, RUNNING, Retry_After=seconds)
    world.will(200, DONE)
    world.job.wait()
    assert world.times == [0.0, 5.0, 7.0, 16.0]
    assert world.job.retry_after_s is None


@pytest.mark.parametrize("retry_after", ["", "0", "soon"])
def test_no_server_is_asked_more_than_once_a_second(world: World, retry_after: str) -> None:
    """Also where it claims to hold the request and does not, or says nothing."""
    for _ in range(3):
        world.will(200, RUNNING, Retry_After=retry_after, Preference_Applied="wait=30")
    world.will(200, DONE)
    world.job.wait()
    assert world.times == [0.0, 1.0, 2.0, 3.0]


def test_a_server_that_holds_is_asked_again_at_once(world: World) -> None:
    """What it says by Retry-After is for those who poll."""
    world.will(200, RUNNING, took_s=30, Retry_After="20", Preference_Applied="wait=30")
    world.will(200, DONE, took_s=7)
    world.job.wait()
    assert world.times == [0.0, 30.2]
    assert world.holds == [30, 30]


def test_a_held_look_ends_before_the_wait_does(world: World) -> None:
    """And the last ones are not held, but still obey."""
    world.will(200, RUNNING, took_s=8, Retry_After="1", Preference_Applied="wait=8")
    world.will(200, RUNNING, Retry_After="1")
    with pytest.raises(JobTimeout) as caught:
        world.job.wait(timeout_s=9.5)
    assert world.holds == [8, None, None]
    assert world.times == [0.0, 8.2, 9.2]
    assert world.now_s == 1009.5
    assert caught.value.job is world.job


def test_a_wait_that_is_shorter_than_retry_after_asks_nothing(world: World) -> None:
    """It takes its time and says so."""
    accepted(world, "60")
    with pytest.raises(JobTimeout, match=ID):
        world.job.wait(timeout_s=5)
    assert (world.times, world.now_s) == ([], 1005.0)


def test_a_wait_without_end_goes_on(world: World) -> None:
    """A hundred held looks, and the job is there."""
    for _ in range(100):
        world.will(200, RUNNING, took_s=30, Preference_Applied="wait=30")
    world.will(200, DONE)
    assert world.job.wait(timeout_s=None).done


def test_a_job_that_has_ended_is_not_asked_about_again(world: World) -> None:
    """A final status never changes."""
    world.will(200, DONE)
    world.job.wait()
    assert world.job.wait(timeout_s=0) is world.job
    assert world.job.result() is None
    assert len(world.asked) == 1


def test_a_document_of_a_list_is_completed(world: World) -> None:
    """Lists leave the outcome out."""
    listed = Job(world.transport, URL, {"job_id": ID, "status": "succeeded"})
    assert listed.done
    world.will(200, {**DONE, "result": 25})
    assert listed.result() == 25


def test_who_watches_is_told_of_each_change_at_once(world: World) -> None:
    """First what there is; then each request is held until the ETag moves."""
    applied = {"Preference_Applied": "wait=30", "Retry_After": "9"}
    half = {**RUNNING, "progress": {"fraction": 0.5}}
    world.will(200, RUNNING, ETag='W/"1"', Retry_After="9", Preference_Applied="wait=0")
    world.will(200, half, took_s=3, ETag='W/"2"', **applied)
    world.will(200, QUEUED, took_s=1, ETag='W/"3"', **applied)  # it runs again
    world.will(200, DONE, took_s=1, ETag='"4"')
    seen: list[Any] = []
    world.job.wait(on_progress=lambda each: seen.append(each.document))
    assert seen == [RUNNING, half, QUEUED, DONE]
    assert world.times == [0.0, 0.2, 3.4, 4.6]
    assert world.holds == [0, 30, 30, 30]
    assert [call.fields for _, call in world.asked] == [
        {},
        *({"If-None-Match": f'W/"{number}"'} for number in (1, 2, 3)),
    ]


def test_who_watches_a_server_that_does_not_hold_obeys_retry_after(world: World) -> None:
    """Its answer to `wait=0` shows that it does not."""
    world.will(200, RUNNING, ETag='W/"1"', Retry_After="9")
    world.will(304, ETag='W/"1"', Retry_After="8")
    world.will(200, DONE)
    world.job.wait(on_progress=lambda _: None)
    assert world.times == [0.0, 9.0, 17.0]


def test_after_a_304_what_moves_without_the_etag_is_fetched(world: World) -> None:
    """Position and estimate."""
    world.will(200, {**QUEUED, "position": 9}, ETag='W/"1"', Preference_Applied="wait=0")
    world.will(304, took_s=30, ETag='W/"1"', Preference_Applied="wait=30", Retry_After="50")
    world.will(200, {**QUEUED, "position": 2}, ETag='W/"1"', Preference_Applied="wait=0")
    world.will(200, DONE, took_s=2)
    seen: list[int | None] = []
    world.job.wait(on_progress=lambda each: seen.append(each.position))
    assert seen == [9, 2, None]
    assert world.times == [0.0, 0.2, 30.4, 30.6]
    assert world.holds == [0, 30, 0, 30]


def test_what_on_progress_raises_comes_out(world: World) -> None:
    """And the job can be waited for again."""
    world.will(200, RUNNING)
    with pytest.raises(ZeroDivisionError):
        world.job.wait(on_progress=lambda _: 1 // 0)  # type: ignore[arg-type]
    world.will(200, DONE)
    assert world.job.wait().done


def test_a_look_that_is_cut_while_it_is_held_is_repeated_without(world: World) -> None:
    """Somebody between may not let it; the next one is held for half as long."""
    world.will(0, took_s=15)
    world.will(200, RUNNING, Retry_After="3")
    world.will(504, took_s=15)
    world.will(200, RUNNING, Retry_After="3")
    world.will(200, DONE)
    world.job.wait()
    assert world.holds == [30, None, 15, None, 7]


def test_after_an_outage_looks_are_held_for_longer_and_longer_again(world: World) -> None:
    """A second more for each that was held well, so that somebody who cuts at a certain time rarely does."""
    for _ in range(6):
        world.will(0)
        world.will(200, RUNNING, Retry_After="1")
    for hold_s in (1, 2, 3):
        world.will(200, RUNNING, took_s=hold_s, Preference_Applied=f"wait={hold_s}")
    world.will(200, DONE)
    world.job.wait(timeout_s=None)
    assert [hold_s for hold_s in world.holds if hold_s] == [30, 15, 7, 3, 1, 1, 1, 2, 3, 4]


def test_a_job_that_was_never_heard_of_is_not_waited_for_long(world: World) -> None:
    """Perhaps the address is wrong: a look has the client's time, with all its retries."""
    world.will(0)
    with pytest.raises(Unreachable, match="cut off") as caught:
        world.job.wait(timeout_s=3600)
    assert world.now_s - 1000 < 30 + TIMEOUT_S
    assert len(world.asked) > 8
    assert (caught.value.idempotency_key, caught.value.retryable) == (None, True)


def test_an_outage_in_the_midst_of_a_wait_is_sat_out(world: World) -> None:
    """Ten minutes without an answer, or with one that says when to come back; none holds the only attempt."""
    for _ in range(5):
        world.will(0, took_s=10_000)
    world.will(503, Retry_After="300")
    world.will(200, DONE)
    assert accepted(world, "1").wait(timeout_s=3600).done
    assert 600 < world.now_s - 1000 < 1000


def test_what_an_outage_looks_like_can_be_read_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first attempt that failed to the next answer."""
    seen: list[str] = []
    monkeypatch.setattr(transport, "pause", lambda _: seen.append(world.job.trouble))
    world.will(200, RUNNING, Retry_After="1")
    world.will(0)
    world.will(503, {"detail": "Full."}, Content_Type="json")
    world.will(200, DONE)
    assert world.job.wait().trouble == ""
    assert seen == ["cut off", "503: Full."]


def test_an_outage_at_the_end_of_a_wait_is_a_timeout(world: World) -> None:
    """The job was heard of, and goes on as far as is known."""
    world.will(200, RUNNING, Retry_After="2")
    world.will(0)
    with pytest.raises(JobTimeout, match="the last look met trouble") as caught:
        world.job.wait(timeout_s=5)
    assert isinstance(caught.value.__cause__, Unreachable)


def test_who_waits_again_and_again_obeys_as_well(world: World) -> None:
    """A Retry-After that leads past the end of a wait counts in the next one."""
    world.will(200, RUNNING, Retry_After="1")
    world.will(503, Retry_After="100")
    world.will(200, DONE)
    for _ in range(5):
        with pytest.raises(JobTimeout):
            world.job.wait(timeout_s=20)
    assert world.job.wait(timeout_s=20).done
    assert world.times[:2] == [0.0, 1.0]
    assert 101 <= world.times[2] < 112


def test_trouble_that_does_not_pass_ends_a_wait(world: World) -> None:
    """Such as a certificate that has become another one."""
    world.will(200, RUNNING, Retry_After="2")
    world.will(-1)
    with pytest.raises(Unreachable) as caught:
        world.job.wait()
    assert caught.value.retryable is False


def test_a_job_may_go_in_the_midst_of_a_wait(world: World) -> None:
    """410 is JobGone, with the time of it."""
    world.will(200, RUNNING, Retry_After="1")
    world.will(
        410, {"type": "urn:problem-type:aj:job-expired", "expired_at": "2026-11-29T15:00:00Z"}, Content_Type="json"
    )
    with pytest.raises(JobGone) as caught:
        world.job.wait()
    assert (caught.value.slug, caught.value.expired_at) == ("job-expired", "2026-11-29T15:00:00Z")


def test_what_is_new_in_a_document_is_kept(world: World) -> None:
    """A later server may say more."""
    world.will(200, {**DONE, "region": "north"})
    assert world.job.refresh().document["region"] == "north"


@pytest.mark.parametrize(
    "document",
    [
        *({**QUEUED, "status": "paused"}, {"job_id": ID}, [], None, {**QUEUED, "status": ["queued"]}),
        *({"job_id": ID, "status": "succeeded"}, {"job_id": ID, "status": "failed", "result": 1}),
    ],
)
def test_what_the_contract_does_not_have_is_not_understood(world: World, document: Any) -> None:
    """A fifth word, no word, no object, an end without its outcome."""
    world.will(200, document)
    with pytest.raises(NotUnderstood):
        world.job.refresh()
    assert world.job.document == {}


def test_an_answer_about_another_job_is_refused(world: World) -> None:
    """Whoever mixed them up."""
    accepted(world, "1")
    world.will(200, {**DONE, "job_id": "another"})
    with pytest.raises(NotUnderstood, match="another job"):
        world.job.wait()
    assert world.job.document == QUEUED


def test_a_failure_says_why(world: World) -> None:
    """By type and detail, each a text."""
    world.will(200, {"job_id": ID, "status": "failed", "error": {"type": "lost", "title": "The worker died"}})
    with pytest.raises(JobFailed) as caught:
        world.job.result()
    assert (caught.value.type, caught.value.detail) == ("lost", "The worker died")


def test_a_job_says_what_it_is() -> None:
    """Before anything was asked."""
    unseen = Job(None, URL)  # type: ignore[arg-type]
    assert (unseen.id, unseen.status, unseen.done, unseen.retry_after_s) == (ID, "", False, None)
    assert (unseen.progress, unseen.position, unseen.eta_s) == (None, None, None)
    assert repr(unseen) == f"<Job {ID} not looked at>"
