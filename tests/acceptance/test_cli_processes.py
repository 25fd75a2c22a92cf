"""`aj up` and `aj demo`, as somebody uses them who has only installed the package, in a folder of his own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import AJ, CommandLine
from tests.support.processes import clean_env, free_port, running
from tests.support.waiting import wait_until

WHOLE_S = 60.0


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Free ports, and a folder for what is temporary."""
    (tmp_path / "tmp").mkdir()
    return {"AJ_PORT": str(free_port()), "AJ_HOOKSINK_PORT": str(free_port()), "TMPDIR": str(tmp_path / "tmp")}


def test_demo_plays_one_job(env: dict[str, str], tmp_path: Path) -> None:
    """And what a caller has in his environment does not disturb it."""
    done = subprocess.run(
        [*AJ, "demo"],
        env=clean_env({**env, "AJ_URL": "http://127.0.0.1:1", "AJ_API_KEY": "aj_mine"}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WHOLE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "signature=valid" in done.stdout


def test_up_finds_the_tasks_of_its_folder_and_stops_in_order(env: dict[str, str], tmp_path: Path) -> None:
    """By the script that an installation makes, which does not look into the working folder by itself."""
    (tmp_path / "shop.py").write_text("from aj import task\n\n@task\ndef half(n: int) -> float:\n    return n / 2\n")
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "aj"
    script.write_text("import sys\nfrom aj.cli import main\nsys.exit(main())\n")
    with running([sys.executable, str(script), "up"], {**env, "AJ_TASKS": "shop"}, tmp_path, cwd=tmp_path) as up:
        wait_until(lambda: "everything runs" in up.output, within_s=WHOLE_S, what="all parts")
        done = CommandLine({"AJ_URL": f"http://127.0.0.1:{env['AJ_PORT']}"})("submit", "n=5", "--wait")
        up.process.send_signal(signal.SIGINT)
        assert up.process.wait(WHOLE_S) == 0
    assert (done.code, done.out) == (0, "2.5\n")
