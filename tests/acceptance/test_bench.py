"""`./run bench` works from end to end. How quick anything is decides nothing here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT, clean_env


def _part(name: str, document: str) -> str:
    return document.split(f"<!-- bench: {name} -->")[1].split("<!-- end -->", maxsplit=1)[0]


def test_a_tiny_bench_of_aj_alone_writes_its_figures(folder: Path) -> None:
    """Requests and jobs are measured, and stand in the document and its picture; the other parts stay."""
    before = (ROOT / "docs/performance.md").read_text("utf-8")
    (folder / "performance.md").write_text(before, "utf-8")
    command = [sys.executable, "-m", "bench", "--stacks", "aj", "--only", "growth"]
    done = subprocess.run(
        [*command, "--rounds", "1", "--seconds", "0.2", "--sizes", "60", "--docs", str(folder)],
        cwd=ROOT,
        env=clean_env({}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    written = (folder / "performance.md").read_text("utf-8")
    for start in ("| POST, 60 ", "| GET of a job, 60 ", "| page of 50 jobs, 60 ", "| running a job, 60 "):
        assert start in written
        assert start in done.stdout
    assert _part("submit", written) == _part("submit", before)
    assert "`./run bench --only growth --stacks aj` on" in written
    assert "1 x 0.2 s" in written
    assert "</svg>" in (folder / "performance_growth.svg").read_text("utf-8")
    assert not (folder / "performance_latency.svg").exists()
