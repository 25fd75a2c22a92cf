"""The Python of docs/client.md runs as it stands, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import aj.client
from aj.local.embedded import ServerProcess
from tests.support.processes import ROOT, clean_env, running_api, running_worker

PAGE = (ROOT / "docs/client.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def api(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `./run up` starts, at the address of this test."""
    folder: Path = tmp_path_factory.mktemp("client-docs")
    env = {"AJ_REDIS_URL": store.url, "AJ_PREFIX": "client-docs", "AJ_QUEUES": "q:client-docs"}
    with running_api(env, folder) as (_, url), running_worker(env, folder):
        yield url


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_it_says(api: str, number: int) -> None:
    """What stands behind `print(…)  #` is what is printed; lines of progress may come before."""
    code = EXAMPLES[number]
    said = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
    command = [sys.executable, "-c", code.replace("http://127.0.0.1:8140", api)]
    done = subprocess.run(command, env=clean_env({}), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert printed[len(printed) - len(said) :] == said
    if "on_progress" not in code:
        assert len(printed) == len(said)


@pytest.mark.parametrize("name", aj.client.__all__)
def test_every_public_name_is_explained(name: str) -> None:
    """A name that goes, or comes, is a change that users see."""
    assert re.search(rf"\b{name}\b", PAGE)


def test_there_are_examples() -> None:
    """Else the test above holds nothing."""
    assert len(EXAMPLES) == 5
