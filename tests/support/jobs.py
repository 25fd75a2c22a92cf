"""Short words for what most tests do: submit, run, look."""

from __future__ import annotations

from typing import Any

from flask.testing import FlaskClient

from tests.conftest import Deployment


def submit(client: FlaskClient, key: str | None = None, **members: Any) -> str:
    """Submits a job and gives its id."""
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = client.post("/jobs", json=members, headers=headers)
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json["job_id"] if answer.json else ""
    return job_id


def caller(deployment: Deployment, key: str) -> FlaskClient:
    """A client of the API that shows an API key."""
    client = deployment.client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    return client


def document(client: FlaskClient, job_id: str) -> dict[str, Any]:
    """The job's document."""
    answer = client.get(f"/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json or {})


def work_off(deployment: Deployment) -> None:
    """Has a worker of this process run what waits in the queue."""
    worker = deployment.worker()
    while deployment.queued():
        worker.work_once()


def run(deployment: Deployment, client: FlaskClient, **members: Any) -> dict[str, Any]:
    """Submits a job, runs what waits, and gives the document."""
    job_id = submit(client, **members)
    work_off(deployment)
    return document(client, job_id)
