"""`python -m tests.soak --jobs 100000 [--workers 2] [--minutes 20]`: a soak; exit code 1 where something is left."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.soak.scene import Wish, run


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Runs many jobs and looks what they left."
    )
    parser.add_argument("--jobs", type=int, default=10_000, help="how many to submit (10000)")
    parser.add_argument("--workers", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--minutes", type=float, default=60.0, help="submit no more after that long (60)")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="aj-soak-") as folder:
        wish = Wish(asked.jobs, asked.workers, asked.minutes * 60)
        left = run(Path(folder), wish, lambda text: print(text, flush=True))
    for kind, number in sorted(left.items()):
        print(f"left behind: {number} of {kind}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
