"""`python -m tests.pace --minutes 35 [--seed 7] [--figures FILE]`: what a caller that obeys `Retry-After` really gets.

Real processes, real jobs that sleep, real requests. Prints the table of docs/pace.md, and the story of each job that
was beyond what is promised. Two minutes play what fits into them: runs of up to 20 s in queues of up to 1,000 jobs.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.pace.play import measure
from tests.pace.report import beyond, figures, table
from tests.pace.series import planned


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pace", description="Measures callers that obey.")
    parser.add_argument("--minutes", type=float, default=2.0, help="how long, from when the workers are ready (2)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="chooses how long jobs take")
    parser.add_argument("--figures", type=Path, help="a file for what each caller saw, such as docs/pace_measured.csv")
    asked = parser.parse_args(arguments)
    played = planned(asked.minutes)
    if not played:
        parser.error(f"nothing comes to its end in {asked.minutes:g} minutes; the shortest run takes 0.2")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="aj-pace-") as folder:
        measured = measure(Path(folder), played, asked.seed, lambda text: print(text, flush=True))
    if asked.figures is not None:
        asked.figures.write_text(figures(measured), "utf-8")
    print("", table(measured), "", *beyond(measured), f"seed {asked.seed}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
