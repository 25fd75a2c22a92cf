"""Every page can be used without eyes, without a mouse, on a telephone; and with a key where one is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from aj.access import new_key
from tests.browser.conftest import Site
from tests.conftest import Deployment
from tests.support.jobs import caller, submit
from tests.support.processes import running_api
from tests.support.watched import watched


@dataclass(frozen=True, slots=True)
class Pages:
    """A site on which everything that can be shown is there, and the addresses that show it."""

    site: Site
    paths: list[str]


@pytest.fixture(scope="module")
def pages(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    path = tmp_path_factory.mktemp("pages") / "go"
    gone = "http://127.0.0.1:9/hook?token=x"
    succeeded = site.ended(n=5, metadata={"order": "17"}, callback_url=gone)
    failed = site.ended(task="refuse", text="there is no such album")
    running, queued = (site.submit(task="two_steps", path=str(path)) for _ in range(2))
    jobs = [f"/jobs/{each}" for each in (succeeded, failed, running, queued)]
    lists = ["/jobs", "/jobs?status=failed&task=square", "/deliveries", "/deliveries?state=exhausted"]
    yield Pages(site, ["", *lists, *jobs, "/nobody"])
    path.touch()


# By every rule that it has by default, best practices among them; in the dark only the colours differ.
RULES: dict[str, dict[str, Any]] = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}


@pytest.mark.parametrize("scheme", RULES)
def test_axe_finds_nothing_on_any_page(pages: Pages, browser: Browser, scheme: Literal["light", "dark"]) -> None:
    """Names, order, tables, contrast, in either of two schemes of colours."""
    axe, options = Axe(), {"resultTypes": ["violations"], **RULES[scheme]}
    found = []
    with watched(browser, color_scheme=scheme, forgives="404 (NOT FOUND)") as page:
        for path in pages.paths:
            page.goto(pages.site.page(path))
            result = axe.run(page, options=options)
            found += [f"{path}: {result.generate_report()}"] if result.violations_count else []
    assert found == []


def test_every_page_fits_a_telephone(pages: Pages, browser: Browser) -> None:
    """Nothing has to be moved aside to be read, and what is narrow is as good for axe."""
    with watched(browser, viewport={"width": 360, "height": 740}, forgives="404 (NOT FOUND)") as page:
        for path in pages.paths:
            page.goto(pages.site.page(path))
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, path
        page.goto(pages.site.page())
        assert Axe().run(page).violations_count == 0


def test_a_person_signs_in_and_out(deploy_guarded: tuple[Deployment, str], browser: Browser, folder: Path) -> None:
    """A wrong key is refused, a right one leads to the page that was asked for, and a link from elsewhere to it finds
    the session; signed out, nobody sees it."""
    deployment, key = deploy_guarded
    job_id = submit(caller(deployment, key), n=5)
    with (
        running_api(deployment.env, folder, "--workers", "1", "--threads", "8") as (_, url),
        watched(browser, forgives="403 (FORBIDDEN)", visits="localhost") as page,
    ):
        link = f'<a href="{url}/dashboard/jobs/{job_id}">look</a>'
        page.goto(f"{url}/dashboard/jobs/{job_id}")
        expect(page.locator("h1")).to_have_text("Sign in")
        assert Axe().run(page).violations_count == 0
        page.get_by_label("API key").fill("aj_wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("This is no API key of this deployment.")
        assert Axe().run(page).violations_count == 0
        page.get_by_label("API key").fill(key)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text(job_id)
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Cancel the job").click()
        expect(page.locator(".heading .state")).to_contain_text("cancelled")
        page.goto(f"{url}/dashboard")
        expect(page.locator("main")).to_contain_text("jobs of alice")
        assert Axe().run(page).violations_count == 0
        page.route("http://localhost:9/mail", lambda route: route.fulfill(body=link, content_type="text/html"))
        page.goto("http://localhost:9/mail")
        page.get_by_role("link", name="look").click()
        expect(page.locator("h1")).to_contain_text(job_id)
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("h1")).to_have_text("Sign in")
        page.goto(f"{url}/dashboard/jobs/{job_id}")
        expect(page.locator("h1")).to_have_text("Sign in")


@pytest.fixture
def deploy_guarded(deploy: object) -> tuple[Deployment, str]:
    """A deployment with one caller, and the key."""
    key, digest = new_key()
    assert callable(deploy)
    made: Deployment = deploy(AJ_API_KEYS=f"alice:{digest}", AJ_DASHBOARD="act", AJ_WEB_THREADS="8")
    return made, key
