"""The examples of docs/cli.md, run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.cli.exits import Exit
from aj.cli.root import COMMANDS
from aj.local.embedded import ServerProcess
from tests.support.processes import ROOT, clean_env, running_api, running_worker

PAGE = (ROOT / "docs/cli.md").read_text("utf-8")
EXAMPLES = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
URL = "http://127.0.0.1:8140"
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
# On a terminal such a line is drawn, and gone at the end.
ON_THE_WAY = re.compile(r"(queued|running)\b")


@pytest.fixture(scope="module")
def api(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `./run up` starts, at an address of this test."""
    folder = tmp_path_factory.mktemp("cli_docs")
    env = {"AJ_REDIS_URL": store.url, "AJ_PREFIX": "clidocs", "AJ_QUEUES": "q:clidocs"}
    with running_api(env, folder) as (_, url), running_worker(env, folder):
        yield url


def test_the_examples_are_what_really_happens(api: str, tmp_path: Path) -> None:
    """Each command is run and answers as written, but for ids and times."""
    (tmp_path / "aj").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aj "$@"\n')
    (tmp_path / "aj").chmod(0o755)
    assert len(EXAMPLES) > 5
    real_ids: dict[str, str] = {}
    for example in EXAMPLES:
        lines = example.splitlines()
        script = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
        expected = [line for line in lines if not line.startswith("$ ")]
        said = _run(ID.sub(lambda found: real_ids.get(found[0], found[0]), script), api, tmp_path)
        assert [_general(line) for line in said] == [_general(line) for line in expected], script
        real_ids.update(zip(ID.findall("\n".join(expected)), ID.findall("\n".join(said)), strict=True))


def test_every_command_and_every_exit_code_stands_on_the_page() -> None:
    """Nothing has to be found out by trying."""
    assert [name for name in COMMANDS if f"`aj {name}" not in PAGE] == []
    assert set(re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)) == {str(int(code)) for code in Exit}


def _run(script: str, api: str, folder: Path) -> list[str]:
    env = clean_env({"AJ_URL": api})
    done = subprocess.run(
        ["sh", "-c", script.replace(URL, api)],
        env={**env, "PATH": f"{folder}:{env['PATH']}"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return [line for line in done.stdout.replace(api, URL).splitlines() if not ON_THE_WAY.match(line)]


def _general(text: str) -> str:
    """`text` without what differs from run to run."""
    return TIME.sub("TIME", ID.sub("ID", text))
