"""`python -m tests.chaos --minutes 10 [--seed 7] [--kills-per-minute 100] [--keep FOLDER]`: a run of chaos.

Prints the figures; exit code 1 where a promise was not kept, with each violation and the seed.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.harness import Wish, run
from tests.chaos.report import figures, table, verdict


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Kills a deployment and audits it.")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long to kill (1)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="chooses kills and jobs")
    parser.add_argument("--kills-per-minute", type=float, default=60.0, help="on average (60)")
    parser.add_argument("--keep", type=Path, help="a new folder for logs and evidence, which then stay")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    wish = Wish(asked.minutes * 60, asked.seed, asked.kills_per_minute)
    print(f"seed {wish.seed}, {asked.minutes:g} min, {wish.kills_per_minute:g} kills a minute", flush=True)
    if asked.keep is not None:
        asked.keep.mkdir(parents=True)
        return _play(asked.keep, wish)
    with tempfile.TemporaryDirectory(prefix="aj-chaos-") as folder:
        return _play(Path(folder), wish)


def _play(folder: Path, wish: Wish) -> int:
    done = run(folder, wish, lambda text: print(text, flush=True))
    print(table(figures(done.evidence, done.kills)))
    print(verdict(done.violations, wish.seed))
    return 1 if done.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
