"""One browser for the session, and one API with its worker and store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests
from playwright.sync_api import Browser, expect, sync_playwright

from tests.support import tasks_to_watch
from tests.support.browsers import HOW_TO_GET_ONE, NO_BROWSER, browser_path
from tests.support.own_store import own_deployment
from tests.support.processes import running_api, running_worker
from tests.support.waiting import wait_until
from tests.support.watched import ARGUMENTS


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium. Where there is none these tests are left out; where CI runs them they fail."""
    path = browser_path()
    if path is None and os.environ.get("CI"):
        pytest.fail(f"{NO_BROWSER}: {HOW_TO_GET_ONE}")
    if path is None:
        pytest.skip(NO_BROWSER)
    with sync_playwright() as playwright:
        expect.set_options(timeout=20_000)
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@dataclass(frozen=True, slots=True)
class Site:
    """A deployment as a browser meets it: `url` is that of the API."""

    url: str

    def page(self, path: str = "") -> str:
        return f"{self.url}/dashboard{path}"

    def submit(self, **members: object) -> str:
        answer = requests.post(f"{self.url}/jobs", json=members, timeout=10)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def status(self, job_id: str) -> str:
        return str(requests.get(f"{self.url}/jobs/{job_id}", timeout=10).json()["status"])

    def ended(self, **members: object) -> str:
        """Submits a job and waits for its end."""
        job_id = self.submit(**members)
        wait_until(lambda: self.status(job_id) in ("succeeded", "failed"), what="the end of a job")
        return job_id


@pytest.fixture(scope="session")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One worker, and a webhook that is given up after one attempt."""
    folder = tmp_path_factory.mktemp("site")
    settings = {"AJ_TASKS": tasks_to_watch.__name__, "AJ_CALLBACK_SCHEDULE_S": "0", "AJ_DASHBOARD": "act"}
    web = ("--workers", "1", "--threads", "8")
    with (
        own_deployment(folder / "store", **settings, AJ_WEB_THREADS="8") as deployment,
        running_api(deployment.env, folder, *web) as (_, url),
        running_worker(deployment.env, folder),
    ):
        yield Site(url)
