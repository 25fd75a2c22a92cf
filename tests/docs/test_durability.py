"""The table of docs/deploying.md that says what each setting of the store loses, as far as it can be measured.

Jobs are accepted, the store is killed with SIGKILL, started again on its files, and asked for each of them. The death
of the whole machine cannot be played here: that column follows from what the store's documentation says of `fsync`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import redis

from aj import create_app
from aj.settings import Settings
from tests.docs.deployed import store_with
from tests.support.processes import ROOT
from tests.support.waiting import wait_until

JOBS = 50
PAGE = (ROOT / "docs/deploying.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(appendonly \w+)`(?:, `([^`]+)`)? \| ([^|]+) \|", PAGE, re.MULTILINE)
LINES = {(row[0], row[1]): row[2].strip() for row in ROWS}


def accept_jobs(url: str) -> list[str]:
    """Their addresses."""
    client = create_app(Settings.from_env({"AJ_REDIS_URL": url})).test_client()
    answers = [client.post("/jobs", json={"n": n}) for n in range(JOBS)]
    assert {answer.status_code for answer in answers} == {202}
    return [answer.headers["Location"] for answer in answers]


def known(url: str, jobs: list[str]) -> int:
    client = create_app(Settings.from_env({"AJ_REDIS_URL": url})).test_client()
    return [client.get(job).status_code for job in jobs].count(200)


def test_the_table_has_the_settings_that_matter() -> None:
    """One row each."""
    assert {second for _, second in LINES} == {
        "appendfsync always",
        "appendfsync everysec",
        "appendfsync no",
        "save 60 1",
        'save ""',
    }


@pytest.mark.parametrize("setting", LINES)
def test_what_a_killed_store_has_lost_is_what_the_page_says(setting: tuple[str, str], tmp_path: Path) -> None:
    """Nothing, or all since the last snapshot, which here is none."""
    lines = [*setting, "maxmemory-policy noeviction", *(['save ""'] if "appendfsync" in setting[1] else [])]
    with store_with(tmp_path / "store", *lines) as (url, process):
        jobs = accept_jobs(url)
        process.kill()
        process.wait()
    with store_with(tmp_path / "store", *lines) as (url, _):
        lost = JOBS - known(url, jobs)
    assert lost == (0 if LINES[setting] == "nothing" else JOBS)


def test_a_copy_is_restored_as_the_page_on_operating_says(tmp_path: Path) -> None:
    """Put where the store looks for it, it is not read while there is to be a log; so that one is turned on later."""
    folder, copy = tmp_path / "store", tmp_path / "copy.rdb"
    with store_with(folder, "appendonly yes") as (url, _):
        jobs = accept_jobs(url)
        redis.Redis.from_url(url).save()
        shutil.copy(folder / "dump.rdb", copy)

    def put_back() -> None:
        shutil.rmtree(folder / "appendonlydir")
        shutil.copy(copy, folder / "dump.rdb")

    put_back()
    with store_with(folder, "appendonly yes", 'save ""') as (url, _):
        assert known(url, jobs) == 0
    put_back()
    with store_with(folder, "appendonly no", 'save ""') as (url, _):
        assert known(url, jobs) == JOBS
        store = redis.Redis.from_url(url)
        store.config_set("appendonly", "yes")
        wait_until(lambda: is_written(store), what="the log")
    with store_with(folder, "appendonly yes", 'save ""') as (url, _):
        assert known(url, jobs) == JOBS


def is_written(store: redis.Redis) -> bool:
    info: Any = store.info("persistence")
    return not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]
