"""Pages in a real browser, which tell of all that a page must not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AWAY = "503 (Service Unavailable)"


@contextmanager
def watched(browser: Browser, *, forgives: str = "never", visits: str = "", **options: Any) -> Iterator[Page]:
    """A page in a context of its own. Fails the test where the page had an error, broke its policy, or asked another
    host for something; a line of the console that holds `forgives` is one that the test provokes, and `visits` is a
    host where it goes itself. A 503 is nobody's fault: a machine that is busy enough brings one, and pages go on."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.set_default_timeout(15_000)
    page, wrong, hosts = context.new_page(), [], set()
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    try:
        yield page
    finally:
        context.close()
    wrong += [f"a request to {host}" for host in hosts - {"127.0.0.1", visits}]
    unforgiven = [each for each in wrong if forgives not in each and AWAY not in each]
    assert not unforgiven, unforgiven
