"""No text of a caller or a task, however long its words are, makes a page wider than the window, or hides a column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page

from aj import clock
from aj.access import new_key
from aj.store import Keys
from tests.conftest import Deployment
from tests.support import tasks_to_watch
from tests.support.jobs import caller, document, run, submit
from tests.support.processes import running_api, running_worker
from tests.support.waiting import wait_until
from tests.support.watched import watched

OWNER = "purchasing-department-of-the-northern-region-branch-number-7"
TASK = tasks_to_watch.reconcile_the_ledgers_of_all_subsidiaries.__name__
# What stands, or has something, beyond the right end of the window or of its card.
BURST = """[...document.querySelectorAll("html, .bar .inner, .card, td, th")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth)
    .map((each) => `${each.tagName} ${each.className} ${each.textContent.trim().slice(0, 40)}`)"""


def test_long_texts_leave_every_column_in_sight(
    deploy: Callable[..., Deployment], browser: Browser, folder: Path
) -> None:
    """A task of 41 letters, an address as message, a caller of 60, times in many words; on a telephone, a tablet, a
    screen, and where one look gives way to another."""
    key, digest = new_key()
    keys = {"AJ_API_KEYS": f"{OWNER}:{digest}", "AJ_DASHBOARD_OPERATORS": OWNER, "AJ_CALLBACK_SCHEDULE_S": "0"}
    deployment = deploy(AJ_TASKS=tasks_to_watch.__name__, AJ_DASHBOARD="act", **keys)
    client, path = caller(deployment, key), folder / "go"
    failed = run(deployment, client, task="refuse", text="x" * 300, callback_url=f"http://127.0.0.1:9/{'y' * 200}")
    took_long(deployment, run(deployment, client, n=5)["job_id"])
    running = submit(client, task=TASK, path=str(path))
    with (
        running_api(deployment.env, folder, "--workers", "1", "--threads", "8") as (_, url),
        running_worker(deployment.env, folder),
    ):
        wait_until(lambda: "progress" in document(client, running), what="a message of the running job")
        attempts = f"/jobs/{failed['job_id']}/deliveries"
        wait_until(lambda: (client.get(attempts).json or {})["attempts"], what="an attempt to bring the webhook")
        jobs = [f"/jobs/{each}" for each in (running, failed["job_id"])]
        pages = ["", "/jobs", f"/jobs?task={TASK}", "/deliveries?state=exhausted", *jobs]
        for width in (360, 761, 768, 1024, 1101, 1440):
            with watched(browser, viewport={"width": width, "height": 900}) as page:
                sign_in(page, url, key)
                for each in pages:
                    page.goto(f"{url}/dashboard{each}")
                    assert page.evaluate(BURST) == [], (width, each)
        path.touch()
        wait_until(lambda: document(client, running)["status"] == "succeeded", what="the end of the running job")


def took_long(deployment: Deployment, job_id: str) -> None:
    """Has a job that has succeeded be submitted an hour ago, and have taken all of it."""
    begun_ms = clock.now_ms() - 3_599_000
    key = Keys(deployment.settings.prefix).job(job_id)
    deployment.redis.hset(
        key, mapping={"created_ms": begun_ms, "started_ms": begun_ms, "ended_ms": begun_ms + 3_599_000}
    )


def sign_in(page: Page, url: str, key: str) -> None:
    page.goto(f"{url}/dashboard/sign-in")
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/dashboard")
