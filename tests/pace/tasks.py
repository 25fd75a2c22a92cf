"""The tasks that are played: each does nothing for a while, and has a name and a queue of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from aj import task

LONGEST_S = 1800


def _pausing(name: str, queue: str | None = None) -> Callable[[float], None]:
    @task(name=name, queue=f"q:{queue or name}", timeout_s=LONGEST_S)
    def pause(seconds: float) -> None:
        threading.Event().wait(seconds)

    return pause


hundredths = _pausing("hundredths")
tenths = _pausing("tenths")
second = _pausing("second")
seconds = _pausing("seconds")
minutes = _pausing("minutes")
ten_minutes = _pausing("ten_minutes")
wild = _pausing("wild")
mixed = _pausing("mixed")
mixed_wild = _pausing("mixed_wild", "mixed")
