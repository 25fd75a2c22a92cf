"""A person watches jobs and webhooks, and acts on them, in a real browser."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import requests
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.browser.conftest import Site
from tests.conftest import Deployment
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until
from tests.support.watched import watched

# Counts how often what is read out is written, and the looks that have come to their end.
COUNTED = """
window.written = window.looks = 0;
new MutationObserver((changes) => window.written += changes.length)
    .observe(document.getElementById("said"), {childList: true, characterData: true, subtree: true});
new MutationObserver(() => window.looks++)
    .observe(document.getElementById("live"), {attributeFilter: ["data-state"]});"""


def mark(page: Page) -> None:
    """Leaves something in the page that a reload would take away."""
    page.evaluate("window.isTheSame = true")


def is_marked(page: Page) -> bool:
    return bool(page.evaluate("window.isTheSame === true"))


def test_a_job_is_watched_from_queued_to_succeeded(site: Site, browser: Browser, folder: Path) -> None:
    """Without a reload: it waits, runs with its progress, and ends; a screen reader is told of each change."""
    before, during = folder / "before", folder / "during"
    blocker = site.submit(task="two_steps", path=str(before))
    job_id = site.submit(task="two_steps", path=str(during))
    with watched(browser) as page:
        page.goto(site.page(f"/jobs/{job_id}"))
        state, said = page.locator(".heading .state"), page.locator("#said")
        expect(state).to_have_text("queued")
        mark(page)
        before.touch()
        expect(state).to_have_text("running")
        expect(said).to_have_text("The job is running.")
        expect(page.locator(".now")).to_contain_text("40 %")
        expect(page.locator(".now")).to_contain_text("the first of two steps is done")
        during.touch()
        expect(state).to_have_text("succeeded")
        expect(said).to_have_text("The job has succeeded.")
        expect(page.locator("section.card[aria-labelledby=result] pre")).to_have_text('"both steps"')
        expect(page).to_have_title(f"succeeded: two_steps {job_id} · aj")
        assert is_marked(page)
        page.goto(site.page())
        expect(page.locator("table.jobs")).to_contain_text(blocker)


def test_a_failing_webhook_is_sent_again(site: Site, browser: Browser, receiver: Receiver) -> None:
    """By the button of its page: the same message, once more, and the page tells how it went."""
    receiver.answer = lambda _: (503, {})
    job_id = site.submit(n=5, callback_url=receiver.url())
    with watched(browser) as page:
        page.goto(site.page(f"/jobs/{job_id}"))
        webhook = page.locator("section[aria-labelledby=webhook]")
        expect(webhook.locator(".state")).to_contain_text("exhausted")
        expect(webhook.locator("tbody")).to_contain_text("HTTP 503")
        page.goto(site.page("/deliveries?state=exhausted"))
        page.get_by_role("link", name=job_id).click()
        receiver.answer = lambda _: (200, {})
        page.get_by_role("button", name="Send the webhook again").click()
        expect(page.locator(".notice")).to_contain_text("sent again")
        mark(page)
        expect(webhook.locator(".state")).to_contain_text("delivered")
        expect(webhook.locator("tbody tr")).to_have_count(2)
        expect(webhook.locator("tbody")).to_contain_text("HTTP 200")
        assert is_marked(page)
    first, second = receiver.received
    assert (first.body, first.headers["webhook-id"]) == (second.body, second.headers["webhook-id"])


def test_everything_is_there_without_javascript(site: Site, browser: Browser, folder: Path) -> None:
    """Filter, pages, the way to a job, its cancelling, and a link that asks again."""
    path = folder / "go"
    job_id = site.submit(task="two_steps", path=str(path))
    with watched(browser, java_script_enabled=False) as page:
        page.goto(site.page())
        expect(page.locator("#live")).to_be_hidden()
        page.get_by_role("navigation", name="Pages").get_by_role("link", name="Jobs").click()
        page.get_by_label("Status").select_option("running")
        page.get_by_label("Task").select_option("two_steps")
        wait_until(lambda: site.status(job_id) == "running", what="a running job")
        page.get_by_role("button", name="Show").click()
        page.get_by_role("link", name=job_id).click()
        expect(page.locator(".heading .state")).to_contain_text("running")
        page.get_by_role("button", name="Cancel the job").click()
        page.get_by_role("link", name="Refresh").click()
        expect(page.locator(".heading .state")).to_contain_text("failed")
        expect(page.locator(".heading .state")).to_contain_text("cancelled")
    assert site.status(job_id) == "failed"


def test_everything_can_be_done_with_the_keyboard(site: Site, browser: Browser, folder: Path) -> None:
    """The first stop leads past the bar; focus stays where it is while the page changes around it."""
    path = folder / "go"
    job_id = site.submit(task="two_steps", path=str(path))
    with watched(browser) as page:
        page.goto(site.page())
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text("Skip to the content")
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        link = page.get_by_role("region", name="Latest jobs").get_by_role("link", name=job_id)
        tab_to(page, link)
        mark(page)
        younger = site.submit(n=5)
        expect(page.get_by_role("link", name=younger)).to_be_visible()
        expect(link).to_be_focused()
        assert is_marked(page)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text(job_id)
        tab_to(page, page.get_by_role("button", name="Cancel the job"))
        page.keyboard.press("Enter")
        expect(page.locator(".heading .state")).to_contain_text("cancelled")


def tab_to(page: Page, wanted: Locator) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"no way to {wanted} by the keyboard")


def test_a_page_can_be_held_still(site: Site, browser: Browser) -> None:
    """Whoever reads slowly stops it, and lets it go on."""
    with watched(browser) as page:
        page.clock.install()
        page.goto(site.page("/jobs"))
        button = page.locator("#live")
        button.click()
        expect(button).to_have_text("Paused")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        job_id = site.submit(n=5)
        page.clock.run_for(60_000)
        assert asked == []
        button.click()
        expect(button).to_have_text("Live")
        expect(page.get_by_role("link", name=job_id)).to_be_visible()


def test_a_connection_that_is_lost_is_said(site: Site, browser: Browser) -> None:
    """What was there stays, and goes on when the answer comes again."""
    with watched(browser) as page:
        page.goto(site.page("/jobs"))
        page.route("**/dashboard/jobs", lambda route: route.fulfill(status=503, body="away"))
        expect(page.locator("#live")).to_have_text("No connection")
        expect(page.locator("#said")).to_have_text("The connection is lost; what you see may be old.")
        expect(page.locator("h1")).to_have_text("Jobs")
        page.unroute("**/dashboard/jobs")
        expect(page.locator("#live")).to_have_text("Live")


def test_an_answer_that_never_comes_is_a_lost_connection(site: Site, browser: Browser) -> None:
    """As where the API hangs, or a network drops what is sent: nobody takes old figures for live ones."""
    asked: list[Route] = []
    with watched(browser) as page:
        page.clock.install()
        page.goto(site.page("/jobs"))

        def hold(route: Route) -> None:
            asked.append(route)

        page.route("**/dashboard/jobs", hold)
        page.clock.run_for(2_500)
        wait_until(lambda: page.evaluate("true") and len(asked) == 1, what="the page's question")
        expect(page.locator("#live")).to_have_text("Live")
        page.clock.run_for(10_000)
        expect(page.locator("#live")).to_have_text("No connection")
        expect(page.locator("#said")).to_have_text("The connection is lost; what you see may be old.")
        page.clock.run_for(3_500)
        wait_until(lambda: page.evaluate("true") and len(asked) == 2, what="the page's next question")
        page.unroute("**/dashboard/jobs")
        expect(page.locator("#live")).to_have_text("Live")


def test_what_happened_while_the_connection_was_lost_is_said_with_its_return(site: Site, browser: Browser) -> None:
    """One sentence does not take the place of another that was not read out yet."""
    with watched(browser) as page:
        path = f"/jobs/{site.ended(n=5)}"
        whole = requests.get(site.page(path), timeout=10).text
        page.route(
            "**/dashboard/jobs/*",
            lambda route: route.fulfill(
                body=whole.replace("The job has succeeded.", "The job is running."), content_type="text/html"
            ),
        )
        page.goto(site.page(path))
        page.unroute("**/dashboard/jobs/*")
        page.route("**/dashboard/jobs/*", lambda route: route.fulfill(status=503, body="away"))
        expect(page.locator("#live")).to_have_text("No connection")
        page.unroute("**/dashboard/jobs/*")
        expect(page.locator("#said")).to_have_text("The connection is back. The job has succeeded.")


def test_a_page_of_somebody_between_is_none_of_ours(site: Site, browser: Browser) -> None:
    """As that of a proxy which asks for a password: it is not shown, and not asked for without a pause."""
    asked: list[str] = []
    with watched(browser) as page:
        page.clock.install()
        page.goto(site.page("/jobs"))

        def answer(route: Route) -> None:
            asked.append(route.request.url)
            route.fulfill(body='<main id="main">Who are you?</main>', content_type="text/html")

        page.route("**/dashboard/jobs", answer)
        page.clock.run_for(2_500)
        expect(page.locator("#live")).to_have_text("No connection")
        for _ in range(4):
            seen = len(asked)
            page.clock.run_for(2_900)
            assert len(asked) <= seen + 1
        expect(page.locator("h1")).to_have_text("Jobs")


def test_a_page_of_another_viewer_is_loaded_anew(site: Site, browser: Browser) -> None:
    """Where somebody else has signed in with this browser meanwhile, the head of the page is theirs too."""
    with watched(browser) as page:
        page.goto(site.page("/jobs"))
        mark(page)
        with page.expect_event("load"):
            page.evaluate("document.body.dataset.viewer = 'somebody else'")
        assert not is_marked(page)
        expect(page.locator("h1")).to_have_text("Jobs")


def test_a_page_that_could_not_be_made_comes_by_itself(site: Site, browser: Browser, deployment: Deployment) -> None:
    """As soon as the store is back."""
    away = deployment.client(AJ_REDIS_URL="redis://127.0.0.1:1").get("/dashboard")
    with watched(browser) as page:
        page.route("**/dashboard", lambda route: route.fulfill(status=503, body=away.text, content_type="text/html"))
        page.goto(site.page())
        expect(page.locator("h1")).to_contain_text("The job store cannot be used")
        page.unroute("**/dashboard")
        expect(page.locator("h1")).to_have_text("Overview")


def test_a_page_of_another_host_can_do_nothing(site: Site, browser: Browser, folder: Path) -> None:
    """Also one on another port of the same name, to which browsers send our cookie, with the token of our page."""
    job_id = site.submit(task="two_steps", path=str(folder / "go"))
    with watched(browser, forgives="403 (FORBIDDEN)") as page:
        page.goto(site.page(f"/jobs/{job_id}"))
        proof = page.locator("input[name=token]").first.get_attribute("value")
        form = (
            f'<form method="post" action="{site.page(f"/jobs/{job_id}/cancel")}">'
            f'<input name="token" value="{proof}"><button>go</button></form>'
        )
        page.route("http://127.0.0.1:9/evil", lambda route: route.fulfill(body=form, content_type="text/html"))
        page.goto("http://127.0.0.1:9/evil")
        with page.expect_response(lambda answer: answer.request.method == "POST") as caught:
            page.get_by_role("button", name="go").click()
        assert caught.value.status == 403
        assert site.status(job_id) in ("queued", "running")
        page.goto(site.page(f"/jobs/{job_id}"))
        page.get_by_role("button", name="Cancel the job").click()
        expect(page.locator(".heading .state")).to_contain_text("cancelled")


def _has_looked(page: Page, times: int) -> bool:
    return bool(page.evaluate(f"window.looks >= {times}"))


def test_what_was_said_is_not_said_again_by_looks_that_bring_nothing(site: Site, browser: Browser) -> None:
    """A screen reader reads out what is written there, also where it is the same sentence."""
    with watched(browser) as page:
        page.clock.install()
        page.goto(site.page("/jobs"))
        said, live = page.locator("#said"), page.locator("#live")
        page.route("**/dashboard/jobs", lambda route: route.fulfill(status=503, body="away"))
        page.clock.run_for(4_000)
        expect(live).to_have_text("No connection")
        page.unroute("**/dashboard/jobs")
        page.clock.run_for(4_000)
        expect(said).to_have_text("The connection is back.")
        expect(live).to_have_text("Live")
        page.evaluate(COUNTED)
        for looks in range(1, 4):
            page.clock.run_for(4_000)
            wait_until(partial(_has_looked, page, looks), what="the end of another look")
        assert page.evaluate("window.written") == 0
        expect(said).to_have_text("The connection is back.")
