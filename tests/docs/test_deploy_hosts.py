"""deploy/ on a host: systemd units, nginx with a prefix, a reload under load. Real processes, no systemd.

The units are judged by `systemd-analyze verify`, and the commands in them are started here with their environment file.
That a worker which is told to stop ends its job first is in tests/acceptance/test_worker_process.py.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from aj.settings import Settings
from tests.docs.deployed import DEPLOY, HOME, Site, answers, env_of, site, unit_of
from tests.support.processes import free_port, running
from tests.support.tools import require_tools
from tests.support.waiting import wait_until

NGINX = """
    daemon off; pid nginx.pid; worker_processes 1;
    events {{}}
    http {{
        access_log off; client_body_temp_path body; proxy_temp_path proxy;
        fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
        server {{ listen {url}; server_name shop.example; {ours} }}
    }}
"""
UNITS = ("shop-web.service", "shop-worker@.service")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_finds_no_fault_in_a_unit(unit: str, shop: Site, tmp_path: Path) -> None:
    """Read by systemd's own checker, with the folder of this test in the place of the host's."""
    require_tools("systemd-analyze")
    text = (DEPLOY / unit).read_text("utf-8").replace(HOME, str(shop.home))
    (tmp_path / unit).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_gunicorn_tells_systemd_when_it_is_ready(shop: Site) -> None:
    """As `Type=notify` asks: a unit that waits for the web waits for as long as it needs."""
    assert unit_of("shop-web.service")["Type"] == "notify"
    assert b"READY=1" in shop.told.recv(1024)


def test_the_settings_of_the_units_are_settings() -> None:
    """None is misspelt, and the longest task may end before systemd loses patience."""
    settings = Settings.from_env(env_of(DEPLOY / "shop.env"))
    assert settings.web_threads == 64
    assert int(unit_of("shop-worker@.service")["TimeoutStopSec"]) > settings.job_timeout_s


def test_a_job_is_submitted_through_nginx_and_its_location_has_the_prefix(shop: Site, tmp_path: Path) -> None:
    """Submitted, waited for, asked for and refused through a real nginx."""
    with behind_nginx(shop, tmp_path) as url:
        answer = requests.post(f"{url}/shop/api/jobs", json={"order": 17, "parcels": 4}, timeout=20)
        assert answer.status_code == 202
        assert re.fullmatch(r"/shop/api/jobs/[0-9a-f-]{36}", answer.headers["Location"])
        ended = requests.get(url + answer.headers["Location"], headers={"Prefer": "wait=30"}, timeout=40)
        assert ended.json()["result"] == {"order": 17, "parcels": 4}
        wrong = requests.post(f"{url}/shop/api/jobs", json={"order": "x"}, timeout=20)
        assert (wrong.status_code, wrong.headers["Content-Type"]) == (422, "application/problem+json")
        assert requests.get(f"{url}/shop/", timeout=5).text == "The shop is open.\n"


def test_figures_are_not_for_everybody(shop: Site, tmp_path: Path) -> None:
    """nginx refuses what it is told to keep inside; the application itself answers those who reach it."""
    with behind_nginx(shop, tmp_path) as url:
        assert requests.get(f"{url}/shop/api/metrics", timeout=5).status_code == 403
    assert requests.get(f"{shop.url}/api/metrics", timeout=5).status_code == 200


def test_a_reload_under_load_loses_no_request(shop: Site) -> None:
    """gunicorn is told to reload three times, as `systemctl reload` does, while four clients submit."""
    is_over = threading.Event()
    said: list[int] = []

    def submit_on() -> None:
        while not is_over.is_set():
            said.append(shop.submit(prefer="wait=1").status_code)

    with ThreadPoolExecutor() as clients:
        busy = [clients.submit(submit_on) for _ in range(4)]
        for _ in range(3):
            before = set(shop.web.children())
            shop.web.process.send_signal(signal.SIGHUP)
            wait_until(lambda before=before: is_renewed(shop, before), 60, "new web processes")  # type: ignore[misc]
            answered = len(said)
            wait_until(lambda answered=answered: len(said) >= answered + 4, 60, "answers")  # type: ignore[misc]
        is_over.set()
        for each in busy:
            each.result()
    assert set(said) <= {200, 202}


def is_renewed(shop: Site, before: set[int]) -> bool:
    now = set(shop.web.children())
    return len(now) == 2 and not now & before


@contextmanager
def behind_nginx(shop: Site, folder: Path) -> Iterator[str]:
    """nginx with our `location` in a server of its own, in `folder`; gives the URL of the site."""
    require_tools("nginx")
    url = f"127.0.0.1:{free_port()}"
    ours = (DEPLOY / "nginx.conf").read_text("utf-8").replace("http://127.0.0.1:8000", shop.url)
    (folder / "nginx.conf").write_text(NGINX.format(url=url, ours=ours))
    command = [str(shutil.which("nginx")), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    judged = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stderr
    with running(command, {}, folder, folder):
        wait_until(lambda: answers(f"http://{url}/shop/"), what="nginx")
        yield f"http://{url}"
