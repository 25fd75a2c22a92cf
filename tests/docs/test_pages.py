"""Every page that a stranger follows is played from top to bottom, as he would: its files, terminals and commands."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aj.local.embedded import start_server
from tests.docs.hosts import check_command
from tests.support.markdown import Block, blocks_of, pages
from tests.support.processes import ROOT, clean_env
from tests.support.stage import Stage
from tests.support.tools import PACKAGES, require_tools

PLAYED = (
    "README.md",
    "docs/any-client.md",
    "docs/deploying.md",
    "docs/first-task.md",
    "docs/flask-app.md",
    "docs/operating.md",
    "docs/webhooks.md",
)

# Pages to look things up in: what their blocks show, if they have some, is held by this test.
CHECKED = {
    "docs/check.md": "tests/check",
    "docs/cli.md": "tests/acceptance/test_cli_docs.py",
    "docs/client.md": "tests/acceptance/test_client_docs.py",
    "docs/contract.md": "tests/fundamentals/test_the_contract.py",
    "docs/dashboard.md": "tests/browser",
    "docs/logs.md": "tests/acceptance/test_json_logs.py",
    "docs/pace.md": "tests/acceptance/test_pace_run.py",
    "docs/performance.md": "tests/acceptance/test_bench.py",
    "docs/reliability.md": "tests/acceptance/test_chaos.py",
    "docs/settings.md": "tests/docs/test_pages.py",
    "docs/store.md": "tests/integration/test_sentinel.py",
}
# For who works on the project itself: its one command renews the lock, from the network.
UNTRIED = ("docs/dependencies.md",)


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """A stage with a store of its own."""
    with start_server(folder / "store") as store:
        stage = Stage(folder, store.url, {})
        try:
            yield stage
        finally:
            print(stage.logs())  # for the report of a failure
            stage.leave()


def tools_of(page: str) -> set[str]:
    """The programs beside Python's that the page's commands and scripts call."""
    words = " ".join(block.text for block in blocks_of(page) if block.kind in ("play", "terminal", "file"))
    return {tool for tool in PACKAGES if f" {tool} " in words}


def check_shown(block: Block) -> None:
    """What a page shows of a file of this project stands in it like that."""
    assert block.text in (ROOT / block.words[1]).read_text("utf-8"), f"{block} is not what {block.words[1]} holds"


def check_host(block: Block) -> None:
    for command in block.commands:
        check_command(command.line)


@pytest.mark.parametrize("page", PLAYED)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    """Each block is done in order, in one folder; each command prints what the page says, and its addresses answer."""
    require_tools("bash", *tools_of(page))
    with staged(tmp_path) as stage:
        acts: dict[str, Callable[[Block], None]] = {
            "play": stage.play,
            "terminal": stage.start,
            "shows": stage.look,
            "file": stage.save,
            "shown": check_shown,
            "host": check_host,
        }
        for block in blocks_of(page):
            assert block.kind in acts, f"{block}: nothing is done with a block of ```{' '.join(block.words)}"
            acts[block.kind](block)
        for url in re.findall(r"<(http://127\.0\.0\.1:[^>]+)>", (ROOT / page).read_text("utf-8")):
            stage.visit(url)


@pytest.mark.parametrize("page", pages())
def test_no_block_of_a_page_is_left_to_itself(page: str) -> None:
    """A page is played, or what it shows is another test's subject, or it holds no block at all."""
    if page in PLAYED:
        assert [str(block) for block in blocks_of(page) if block.kind == "nothing"] == []
    elif page not in UNTRIED and blocks_of(page):
        assert page in CHECKED, f"nobody plays or checks the blocks of {page}"
        assert (ROOT / CHECKED[page]).exists()


def test_a_block_that_says_nothing_is_found() -> None:
    """An info string that nobody knows, a language without a file, and none at all are each left to themselves."""
    for info in ("", "text", "python", "console quietly", "js one.js two.js"):
        assert Block("page.md", 1, tuple(info.split()), "").kind == "nothing"


def test_the_configuration_that_the_settings_show_is_one(tmp_path: Path) -> None:
    """gunicorn takes docs/settings.md's example as it stands."""
    (block,) = [each for each in blocks_of("docs/settings.md") if each.words == ("python",)]
    (tmp_path / "gunicorn.conf.py").write_text(block.text, "utf-8")
    (tmp_path / "web.py").write_text("from flask import Flask\n\napp = Flask(__name__)\n", "utf-8")
    command = [sys.executable, "-m", "gunicorn", "--check-config", "web:app"]
    done = subprocess.run(command, cwd=tmp_path, env=clean_env({}), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def anchors(page: Path) -> set[str]:
    """What a link may name behind its `#`, as GitHub makes it of a heading."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().replace("`", "") for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", pages())
def test_links_to_sections_lead_somewhere(page: str) -> None:
    """A heading that is reworded takes its links along."""
    here = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", here.read_text("utf-8"))
    assert [f"{to}#{at}" for to, at in links if at not in anchors(here.parent / to if to else here)] == []
