"""The jobs with which the bench fills the store are such as real ones, and expire like them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.store import Keys
from bench.sections.growth import fill, forget_expired
from tests.conftest import Deployment
from tests.support.own_store import own_deployment


@pytest.fixture
def alone(folder: Path) -> Iterator[tuple[Deployment, str]]:
    """A deployment whose store holds one ended job, and the job's id."""
    with own_deployment(folder / "store", AJ_TASKS="aj.tasks") as deployment:
        job_id = deployment.client().post("/jobs", json={"n": 5}).json["job_id"]  # type: ignore[index]
        assert deployment.worker().work_once()
        yield deployment, job_id


def test_copies_of_an_ended_job_are_jobs_of_their_own(alone: tuple[Deployment, str]) -> None:
    """They are listed, they can be read, they can be deleted, and the first one stays."""
    deployment, job_id = alone
    fill(deployment.redis, job_id, 60)
    client = deployment.client()
    listed = [each["job_id"] for each in client.get("/jobs?limit=200").json["jobs"]]  # type: ignore[index]
    assert len(set(listed)) == 61
    assert {client.get(f"/jobs/{each}").json["result"] for each in listed} == {25}  # type: ignore[index]
    assert client.delete(f"/jobs/{listed[-1]}").status_code == 204
    assert client.get(f"/jobs/{job_id}").status_code == 200


def test_what_is_left_of_an_expired_job_is_its_answer_410(alone: tuple[Deployment, str]) -> None:
    """As after a day, and neither list nor hash remains."""
    deployment, job_id = alone
    forget_expired(deployment.redis, Keys(deployment.settings.prefix))
    client = deployment.client()
    assert client.get(f"/jobs/{job_id}").status_code == 410
    assert client.get("/jobs").json["jobs"] == []  # type: ignore[index]
