"""A quick slice of chaos: everything is killed for a quarter of a minute under load, and nothing is lost.

`./run chaos --minutes 10` plays the same for longer. `docs/reliability.md` has the figures of a long run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.chaos.harness import Wish, run
from tests.chaos.report import figures, table, verdict

WISH = Wish(seconds=15, seed=1883, kills_per_minute=80)


@pytest.mark.skipif(sys.platform != "linux", reason="the processes to kill are found in /proc")
def test_whatever_is_killed_nothing_is_lost(folder: Path) -> None:
    """Each kind of process at least once where one lives, the store included; then the audit from outside."""
    done = run(folder, WISH, print)
    print(table(figures(done.evidence, done.kills)))
    assert done.violations == [], verdict(done.violations, WISH.seed)
    assert done.kills.total() >= 10
    assert len(done.evidence.answers) >= 10
