"""Lists of jobs: newest first, page by page, each caller's own, and without what has expired."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from aj.access import new_key
from aj.clock import now_ms
from aj.store import Keys, Recovery, connect
from tests.conftest import Deployment
from tests.support.jobs import caller, document, run, submit, work_off
from tests.support.sweeping import let_a_minute_pass, take_and_vanish
from tests.support.waiting import wait_until

ALICE, BOB = new_key(), new_key()
KEYS = f"alice:{ALICE[1]},bob:{BOB[1]}"


def test_the_list_is_newest_first_and_pages_are_stable(deployment: Deployment, client: FlaskClient) -> None:
    """What comes in between two pages stands before the first one, and moves nothing."""
    ids = sorted(submit(client, n=n) for n in range(5))  # those of one millisecond are in any order
    submitted_ms = now_ms()
    first = client.get("/jobs?limit=2")
    wait_until(lambda: now_ms() > submitted_ms, what="the next millisecond")
    submit(client, n=9)
    second = client.get(_next(first))
    third = client.get(_next(second))
    seen = [job["job_id"] for page in (first, second, third) for job in (page.json or {})["jobs"]]
    assert seen == ids[::-1]
    assert "Link" not in third.headers


def test_the_list_can_be_narrowed(deployment: Deployment, client: FlaskClient) -> None:
    """By status and by task; a page holds no outcome."""
    good, bad = submit(client, n=2), submit(client, task="fail", text="x")
    work_off(deployment)
    waiting = submit(client, n=3)

    def listed(query: str) -> list[str]:
        return [job["job_id"] for job in (client.get(f"/jobs?{query}").json or {})["jobs"]]

    assert listed("status=succeeded") == [good]
    assert listed("status=failed") == [bad]
    assert listed("status=queued") == [waiting]
    assert listed("status=running") == []
    assert listed("task=square") == [waiting, good]
    assert listed("task=square&status=failed") == []
    assert "result" not in (client.get("/jobs?status=succeeded").json or {})["jobs"][0]


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=abc", "limit=1e3", "status=done", "cursor=x"])
def test_a_query_that_cannot_be_meant_is_400(client: FlaskClient, query: str) -> None:
    """And says what is accepted."""
    answer = client.get(f"/jobs?{query}")
    assert answer.status_code == 400
    assert (answer.json or {})["type"].endswith("malformed-query")


@pytest.mark.parametrize("mounted_at", ["/m n", "/x>y", "/aufträge", "/\u2192"])
def test_the_next_page_can_be_found_below_any_path(client: FlaskClient, mounted_at: str) -> None:
    """The link is a URI, as a header field can hold it."""
    for n in range(2):
        submit(client, n=n)
    raw = mounted_at.encode().decode("latin-1")  # as WSGI gives it
    first = client.get("/jobs?limit=1", environ_overrides={"SCRIPT_NAME": raw})
    assert _next(first).startswith(quote(mounted_at) + "/jobs?")
    assert first.headers["Link"].isascii()
    document = client.get("/openapi.json", environ_overrides={"SCRIPT_NAME": raw}).json or {}
    assert document["servers"] == [{"url": quote(mounted_at)}]


def test_a_caller_with_few_jobs_among_many_finds_them_on_one_page(deploy: Callable[..., Deployment]) -> None:
    """Each caller has lists of its own: nobody pages through the jobs of the others."""
    deployment = deploy(AJ_API_KEYS=KEYS)
    alice, bob = (caller(deployment, key) for key, _ in (ALICE, BOB))
    ended, waiting = submit(alice, n=1), submit(alice, n=2)
    deployment.worker().work_once()
    keys = Keys(deployment.settings.prefix)
    # As many as a page would look at, and more: the ids of others, which no hash belongs to.
    crowd = {f"ffffffff-ffff-7fff-bfff-{number:012x}": 0.0 for number in range(1100)}
    for name in (keys.active, keys.active_of("bob"), keys.ended("succeeded", "bob")):
        deployment.redis.zadd(name, crowd)
    page = alice.get("/jobs")
    assert [job["job_id"] for job in (page.json or {})["jobs"]] == [waiting, ended]
    assert "Link" not in page.headers
    assert (bob.get("/jobs?limit=200").json or {})["jobs"] == []
    work_off(deployment)
    assert alice.delete(f"/jobs/{ended}").status_code == 204
    assert [job["job_id"] for job in (alice.get("/jobs?status=succeeded").json or {})["jobs"]] == [waiting]
    deployment.redis.delete(keys.active, keys.active_of("bob"), keys.ended("succeeded", "bob"))


@pytest.mark.parametrize("api_keys", [None, KEYS], ids=["one caller", "callers"])
def test_what_runs_is_found_before_any_backlog(deploy: Callable[..., Deployment], api_keys: str | None) -> None:
    """Running jobs are the oldest of the active ones: a page of them looks at no other, and at no other caller's."""
    deployment = deploy(**({} if api_keys is None else {"AJ_API_KEYS": api_keys}))
    alice, bob = (caller(deployment, key) for key, _ in (ALICE, BOB))
    ids = []
    for n in range(3):
        ids.append(submit(alice, n=n))
        take_and_vanish(deployment)
    keys = Keys(deployment.settings.prefix)
    crowd = {f"ffffffff-ffff-7fff-bfff-{number:012x}": 0.0 for number in range(1100)}
    for name in {keys.active, keys.active_of("" if api_keys is None else "alice")}:
        deployment.redis.zadd(name, crowd)
    seen, link = [], "/jobs?status=running&limit=2"
    while link:
        page = alice.get(link)
        seen.append([job["job_id"] for job in (page.json or {})["jobs"]])
        link = _next(page) if "Link" in page.headers else ""
    newest_first = sorted(ids, reverse=True)
    assert seen == [newest_first[:2], newest_first[2:]]
    if api_keys is not None:
        others = bob.get("/jobs?status=running&limit=1")
        assert ((others.json or {})["jobs"], "Link" in others.headers) == ([], False)
    deployment.redis.delete(keys.active, keys.active_of("alice"))


@pytest.mark.parametrize("api_keys", [None, KEYS], ids=["one caller", "callers"])
def test_a_sweep_takes_expired_jobs_out_of_the_lists(deploy: Callable[..., Deployment], api_keys: str | None) -> None:
    """Also where an older job lives longer: what stays in the lists is what can be read."""
    deployment = deploy(**({} if api_keys is None else {"AJ_API_KEYS": api_keys}))
    client = caller(deployment, ALICE[0])
    kept = run(deployment, client, n=5)["job_id"]
    brief = [run(deployment, client, task="forget_soon")["job_id"] for _ in range(3)]
    wait_until(lambda: client.get(f"/jobs/{brief[-1]}").status_code == 410, what="the jobs' expiry")
    let_a_minute_pass(deployment)
    recovery = Recovery(connect(deployment.settings.redis_url, for_worker=True), Keys(deployment.settings.prefix))
    recovery.forget_expired()
    listed = Keys(deployment.settings.prefix).ended("succeeded", "" if api_keys is None else "alice")
    assert deployment.redis.zrange(listed, 0, -1) == [kept.encode()]
    recovery.forget_expired()
    assert len(deployment.keys("expiring*")) == 2, "the minute in which the other expires, and its list"


def test_a_task_says_how_long_its_jobs_can_be_read(deployment: Deployment, client: FlaskClient) -> None:
    """Longer or shorter than the deployment does; also where the job is cancelled before it ran."""
    lives_s = {"square": 86_400, "forget_soon": 1, "keep_long": 200_000}
    for task, life_s in lives_s.items():
        ended = run(deployment, client, task=task, **({"n": 5} if task == "square" else {}))
        assert _ms(ended["expires_at"]) - _ms(ended["ended_at"]) == life_s * 1000
        remaining: Any = deployment.redis.ttl(f"rq:job:{ended['job_id']}")
        assert remaining <= life_s
    cancelled = submit(client, task="keep_long")
    client.post(f"/jobs/{cancelled}/cancel")
    ended = document(client, cancelled)
    assert _ms(ended["expires_at"]) - _ms(ended["ended_at"]) == 200_000_000
    lived_s: Any = deployment.redis.ttl(f"rq:job:{cancelled}")
    assert 199_000 < lived_s <= 200_000


def test_a_key_lives_as_long_as_the_result(deployment: Deployment, client: FlaskClient) -> None:
    """Else the same key would start a second job while the first can still be read."""
    submit(client, "k", task="keep_long")
    submit(client, "l", n=5)
    lives_s = sorted(deployment.redis.ttl(key) for key in deployment.keys("idem:*"))
    assert 86_000 < lives_s[0] <= 86_400
    assert 199_000 < lives_s[1] <= 200_000


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _next(answer: Any) -> str:
    link: str = answer.headers["Link"]
    assert link.endswith('>; rel="next"')
    return link[1 : link.index(">")]
