"""What a request costs the store, counted by the store: one round trip, whatever the answer."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aj.job import CallbackState
from aj.store import Attempt, Keys, figures
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
