"""The README's first screen is what really happens; its Python code, and that of the settings, is code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.local.embedded import ServerProcess
from tests.support.processes import ROOT, running_api, running_worker
from tests.support.waiting import wait_until

README = (ROOT / "README.md").read_text("utf-8")
SETTINGS = (ROOT / "docs/settings.md").read_text("utf-8")
EXCHANGES = re.findall(r"```console\n\$ (curl [^\n]*)\n(.*?)```", README, re.DOTALL)
LEFT_OUT = ("Server:", "Date:", "Connection:", "Content-Length:")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
VARIABLE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|ETag: (?:W/)?\"[0-9a-f]+\"")


@pytest.fixture(scope="module")
def api(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `./run up` starts, at the addresses of this test."""
    folder: Path = tmp_path_factory.mktemp("readme")
    env = {"AJ_REDIS_URL": store.url, "AJ_PREFIX": "readme", "AJ_QUEUES": "q:readme"}
    with running_api(env, folder) as (_, url), running_worker(env, folder):
        yield url


def test_the_first_screen_is_what_really_happens(api: str) -> None:
    """Each command is run and answers as written, but for ids, times and entity tags."""
    assert len(EXCHANGES) == 4
    real_ids: dict[str, str] = {}
    for command, expected in EXCHANGES:

        def answers(command: str = command, expected: str = expected) -> bool:
            said = _run(ID.sub(lambda found: real_ids.get(found[0], found[0]), command), api)
            if _general(said) != _general(expected):
                return False
            real_ids.update(zip(ID.findall(expected), ID.findall(said), strict=True))
            return True

        wait_until(answers, what=f"the README's answer to {command}")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README + SETTINGS, re.DOTALL))
def test_the_python_examples_run(api: str, code: str, tmp_path: Path) -> None:
    """Each example can be imported as it stands; what is a client talks to the API."""
    code = code.replace("http://127.0.0.1:8140", api)
    ast.parse(code)
    (tmp_path / "thumbs.py").write_text("from aj import task\n\n@task\ndef thumb(n: int) -> int:\n    return n\n")
    (tmp_path / "example.py").write_text(code)
    command = [sys.executable, "-c", "import example"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}:{tmp_path}"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _run(command: str, api: str) -> str:
    shell = ["sh", "-c", command.replace("http://127.0.0.1:8140", api)]
    said = subprocess.run(shell, capture_output=True, text=True, check=True, timeout=10).stdout
    lines = said.replace("\r\n", "\n").splitlines()
    return "\n".join(line for line in lines if not line.startswith(LEFT_OUT))


def _general(text: str) -> str:
    """`text` without what differs from run to run."""
    return VARIABLE.sub("…", ID.sub("ID", text)).strip()
