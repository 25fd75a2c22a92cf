"""Whatever stands in the store, each page of the dashboard and each list is made; what cannot be read is left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from aj.store import Keys
from tests.conftest import Deployment
from tests.support.jobs import run, submit
from tests.support.sweeping import take_and_vanish

HOOK = "http://127.0.0.1:9/hook"
# Of the whole deployment; the page of one job may say that just this one cannot be shown.
PAGES = (
    "/dashboard",
    "/dashboard/jobs",
    "/dashboard/jobs?status=failed",
    "/dashboard/jobs?status=running",
    "/dashboard/deliveries",
    "/dashboard/deliveries?state=exhausted",
    "/jobs",
    "/metrics",
)
MOST_FIELDS = 10
GARBAGE = (b"\xff\xfe", b"inf", b"[", b"253402300800000", b"-1", b'{"fraction": 1e308, "message": []}')


@pytest.fixture
def scene(client: FlaskClient, deployment: Deployment) -> list[str]:
    """A job that has succeeded, one that has failed, one with a webhook that is owed, one that runs, one that waits."""
    ended = [
        run(deployment, client, n=5),
        run(deployment, client, task="fail", text="x"),
        run(deployment, client, n=7, callback_url=HOOK),
    ]
    running = submit(client, n=8)
    take_and_vanish(deployment)
    return [*(each["job_id"] for each in ended), running, submit(client, n=9)]


def damaged(deployment: Deployment) -> Iterator[tuple[str, str]]:
    """Makes each value of the store unreadable in turn, and whole again; gives the key and what it has become.

    One kind of garbage for each, and of the many figures a few, since the pages are made anew for all of them.
    """
    store, garbage = deployment.redis, itertools.cycle(GARBAGE)
    for key in sorted(store.scan_iter(count=1000)):
        whole, life_ms, kind = store.dump(key), max(0, store.pttl(key)), store.type(key)
        if whole is None:  # its life was over meanwhile
            continue
        for field in sorted(store.hkeys(key))[:MOST_FIELDS] if kind == b"hash" else ():
            store.hset(key, field, wrong := next(garbage))
            yield key.decode(), f"{field!r} is {wrong!r}"
            store.restore(key, life_ms, whole, replace=True)
        if kind in (b"zset", b"list"):
            wrong = next(garbage)
            if kind == b"zset":
                members: Any = store.zrange(key, 0, -1)
                store.zadd(key, {wrong: 1.0, b"z": float("inf"), **dict.fromkeys(members, 1e18)})
            else:
                store.lpush(key, wrong)
            yield key.decode(), f"has {wrong!r}"
        store.delete(key)
        store.set(key, "another type")
        yield key.decode(), "another type"
        store.restore(key, life_ms, whole, replace=True)


def test_one_value_that_cannot_be_read_keeps_no_page_from_being_made(
    client: FlaskClient, deployment: Deployment, scene: list[str]
) -> None:
    """Only where a whole list is no list any more, the store counts as away."""
    wrong = []
    for key, what in damaged(deployment):
        is_list = what == "another type" and not any(each in key for each in scene)
        for page in PAGES:
            status = client.get(page).status_code
            if status != 200 and not (is_list and status == 503):
                wrong.append((status, page, key, what))
    assert wrong == []


def test_other_jobs_are_shown_beside_one_that_cannot_be_read(
    client: FlaskClient, deployment: Deployment, scene: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """And the log says which one it is."""
    broken, *others = scene
    deployment.redis.hset(Keys(deployment.settings.prefix).job(broken), "status", b"\xff")
    for page in ("/jobs", "/dashboard/jobs"):
        text = client.get(page).text
        assert [each in text for each in scene] == [False] + [True] * len(others)
    assert client.get(f"/jobs/{broken}").status_code == 500
    assert f"the record of job {broken} in the store cannot be read" in caplog.text
