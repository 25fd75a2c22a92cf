"""API, worker and receiver as processes of their own: a submitted job comes back as a signed webhook."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import requests
from standardwebhooks.webhooks import Webhook

from hooksink.receipts import Receipt, parse_line
from tests.conftest import Deployment
from tests.support.deliveries import outbox_indexes
from tests.support.processes import accepts, free_port, running, running_api, running_worker
from tests.support.receiver import Received, Receiver
from tests.support.waiting import wait_until

SECRETS = ["whsec_" + "bmV3ZXIgc2VjcmV0IG9mIDI0IGJ5dGVz", "whsec_" + "b2xkZXIgc2VjcmV0IG9mIDI0IGJ5dGVz"]


def submit_to(api: str, **members: object) -> str:
    answer = requests.post(f"{api}/jobs", json=members, timeout=10)
    assert answer.status_code == 202
    return api + answer.headers["Location"]


def test_the_receiver_finds_the_end_of_the_job_it_was_told_of(
    deployment: Deployment, receiver: Receiver, folder: Path
) -> None:
    """Whoever is told of an end and asks another process for the job sees that end, every time."""
    env = {**deployment.env, "AJ_WEBHOOK_SECRETS": ",".join(SECRETS)}
    with running_api(env, folder) as (_, api), running_worker(env, folder):
        seen: list[tuple[str, str]] = []

        def look(got: Received) -> tuple[int, dict[str, str]]:
            told = json.loads(got.body)
            shown = requests.get(f"{api}/jobs/{told['job_id']}", timeout=10).json()
            seen.append((told["status"], shown["status"]))
            return 204, {}

        receiver.answer = look
        for number in range(15):
            submit_to(api, n=number, callback_url=receiver.url())
            submit_to(api, task="fail", text="x", callback_url=receiver.url())
        wait_until(lambda: len(seen) == 30, what="30 webhooks")
        for got in receiver.received:
            for secret in SECRETS:
                Webhook(secret).verify(got.body, got.headers)
        wait_until(lambda: outbox_indexes(deployment) == [], what="30 records")
    assert sorted(seen) == [("failed", "failed")] * 15 + [("succeeded", "succeeded")] * 15
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 30


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_hooksink_takes_what_a_worker_signs(deployment: Deployment, folder: Path, known: bool) -> None:
    """The older of two secrets is enough for it; with a secret that the worker lacks it refuses, and the job stands."""
    port, log = free_port(), folder / "hook.log"
    theirs = SECRETS[1] if known else "whsec_" + "c29tZWJvZHkgZWxzZSdzIHNlY3JldCEh"
    env = {**deployment.env, "AJ_WEBHOOK_SECRETS": ",".join(SECRETS), "AJ_CALLBACK_SCHEDULE_S": "0,0"}
    sink = {"AJ_WEBHOOK_SECRETS": theirs, "AJ_HOOKSINK_PORT": str(port), "HOOKSINK_LOG": str(log)}
    with (
        running([sys.executable, "-m", "hooksink"], sink, folder),
        running_api(env, folder) as (_, api),
        running_worker(env, folder),
    ):
        wait_until(lambda: accepts(port), what="a receiver that listens")
        job = submit_to(api, n=5, callback_url=f"http://127.0.0.1:{port}/hook")
        wait_until(lambda: requests.get(job, timeout=10).json()["callback"]["state"] != "pending", what="the delivery")
        found = requests.get(job, timeout=10).json()
    assert (found["status"], found["result"]) == ("succeeded", 25)
    if not known:
        assert found["callback"] == {"state": "exhausted", "attempts": 2, "last_status": 401}
        assert not log.exists() or log.read_bytes() == b""
        return
    assert found["callback"] == {"state": "delivered", "attempts": 1, "last_status": 200}
    [receipt] = map(parse_line, log.read_bytes().splitlines())
    assert isinstance(receipt, Receipt)
    assert (receipt.job_id, receipt.status, receipt.signature) == (found["job_id"], "succeeded", "valid")
