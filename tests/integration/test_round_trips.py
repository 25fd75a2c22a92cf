"""What a request and a job cost the store, counted by the store: one round trip each."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aj.job import CallbackState
from aj.store import Attempt, Keys, figures
from aj.worker import loop
from tests.conftest import Deployment
from tests.support.deliveries import ended, outbox_of
from tests.support.jobs import run, submit
from tests.support.own_store import own_deployment

NOBODYS = "/jobs/018f2b5e-0000-7000-8000-000000000000"


@pytest.fixture
def alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """A deployment that has its server for itself, so that nobody else is counted, nor the counting of refusals."""
    monkeypatch.setattr(figures, "HELD_S", 3600)
    with own_deployment(tmp_path_factory.mktemp("alone") / "store", AJ_MAX_QUEUED="4") as deployment:
        yield deployment


def trips(deployment: Deployment, act: Callable[[], object]) -> int:
    """How often the server had something to read while `act` ran; the count's own question is left out."""

    def reads() -> int:
        info: Any = deployment.redis.info("stats")
        return int(info["total_reads_processed"])

    # The end of a connection counts as a read too; those of workers that are done with end here.
    gc.collect()
    before = reads()
    act()
    return reads() - before - 1


def commands(deployment: Deployment) -> int:
    """How many commands the server has carried out, those inside scripts too, and this question."""
    info: Any = deployment.redis.info("stats")
    return int(info["total_commands_processed"])


def test_the_count_is_right(alone: Deployment) -> None:
    """It counts reads of the server, so that commands sent in one go are one."""
    assert trips(alone, lambda: None) == 0
    assert trips(alone, lambda: [alone.redis.ping(), alone.redis.ping()]) == 2
    with alone.redis.pipeline(transaction=False) as pipe:
        for _ in range(3):
            pipe.ping()
        assert trips(alone, pipe.execute) == 1


def test_each_submission_costs_one_round_trip(alone: Deployment) -> None:
    """Accepted, replayed, refused for its key or for a full queue; what is wrong in itself costs none."""
    client = alone.client()
    submit(client, n=0)

    def post(key: str | None = None, **members: Any) -> int:
        headers = {} if key is None else {"Idempotency-Key": key}
        seen.append(0)
        return trips(alone, lambda: seen.append(client.post("/jobs", json=members, headers=headers).status_code))

    seen: list[int] = []
    costs = [post(n=5), post("k", n=5), post("k", n=5), post("k", n=6), post("l", n=5), post("m", n=5), post(n="5")]
    assert [status for status in seen if status] == [202, 202, 202, 422, 202, 503, 422]
    assert costs == [1, 1, 1, 1, 1, 1, 0]


def test_each_status_request_costs_one_round_trip(alone: Deployment) -> None:
    """Queued, ended, expired, unknown; an id that nobody can have costs none."""
    client = alone.client()
    ended = f"/jobs/{run(alone, client, n=5)['job_id']}"
    expired = f"/jobs/{run(alone, client, n=6)['job_id']}"
    alone.redis.delete(expired.replace("/jobs/", "aj:job:"))
    queued = f"/jobs/{submit(client, n=5)}"
    seen: list[int] = []
    paths = [queued, ended, expired, NOBODYS, "/jobs/x"]
    costs = [trips(alone, lambda path=path: seen.append(client.get(path).status_code)) for path in paths]  # type: ignore[misc]
    assert seen == [200, 200, 410, 404, 404]
    assert costs == [1, 1, 1, 1, 0]


def test_a_turn_of_the_deliverer_costs_one_round_trip(alone: Deployment) -> None:
    """However many attempts it records and deliveries it claims."""
    client, outbox = alone.client(), outbox_of(alone)
    for _ in range(4):
        ended(alone, client, "http://127.0.0.1:9/hook")
    alone.redis.set(Keys(alone.settings.prefix).answers("127.0.0.1"), 1, ex=600)
    claimed, _ = outbox.claim(2, 30)
    made = [(each, Attempt(CallbackState.DELIVERED, 200, 1)) for each in claimed]
    assert trips(alone, lambda: claimed.extend(outbox.turn(made, 2, 30)[0])) == 1
    assert len(claimed) == 4


def test_a_request_costs_few_commands(alone: Deployment) -> None:
    """Each is a step of the store's one thread, and goes over all of its clients."""
    client = alone.client(AJ_MAX_QUEUED="100")
    ended, queued = f"/jobs/{run(alone, client, n=5)['job_id']}", f"/jobs/{submit(client, n=5)}"

    def cost(ask: Callable[[], object]) -> int:
        before = commands(alone)
        ask()
        return commands(alone) - before - 1

    assert cost(lambda: client.post("/jobs", json={"n": 5})) <= 22
    assert cost(lambda: client.post("/jobs", json={"n": 5}, headers={"Idempotency-Key": "k"})) <= 26
    assert cost(lambda: client.get(ended)) <= 5
    assert cost(lambda: client.get(queued)) <= 12


def test_a_job_costs_one_round_trip(alone: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where others wait behind it; one that comes to an idle worker costs three: the wait, the start and the end."""
    monkeypatch.setattr(loop, "LOOK_INTERVAL_S", 3600)
    client, worker = alone.client(AJ_MAX_QUEUED="100"), alone.worker()
    submit(client, n=1)
    worker.work_once(goes_on=True)

    def cost(count: int) -> tuple[int, int]:
        """Round trips, and commands inside scripts too. The least of three: ends of connections may add to one."""
        costs = []
        for _ in range(3):
            ids = [submit(client, n=n) for n in range(count)]
            before = commands(alone)
            costs.append((trips(alone, lambda: worker.work_once(goes_on=True)), commands(alone) - before))
            assert client.get(f"/jobs/{ids[-1]}").json["status"] == "succeeded"  # type: ignore[index]
        return min(costs)

    (trips_of_one, commands_of_one), (trips_of_eleven, commands_of_eleven) = cost(1), cost(11)
    assert (trips_of_one, trips_of_eleven) == (3, 13)
    # The first of a minute costs one more.
    assert (commands_of_eleven - commands_of_one) / 10 < 56
