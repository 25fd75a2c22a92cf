"""What a process of the outside world saw, one JSON object per line, written as it happens and read by the auditor."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIENTS, RECEIVER = "clients.jsonl", "receiver.jsonl"
SECRET = "whsec_" + "Y2hhb3MgbmVlZHMgYSBzZWNyZXQgdG9v"
Note = dict[str, Any]


class Notes:
    """A file of notes that many threads write to. Each note says `what` it is about."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def write(self, what: str, **more: Any) -> None:
        line = json.dumps({"what": what, **more}) + "\n"
        with self._lock:
            self._file.write(line)


def read_notes(path: Path, what: str) -> list[Note]:
    """The notes about `what`, in order."""
    if not path.exists():
        return []
    notes = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [note for note in notes if note["what"] == what]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the clients are to do: how many there are, and how many jobs each keeps open at a time."""

    folder: str
    seed: int
    apis: list[str]
    hooks: list[str]
    clients: int
    open_jobs: int

    @property
    def notes(self) -> Path:
        return Path(self.folder) / CLIENTS
