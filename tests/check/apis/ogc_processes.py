"""What pygeoapi runs beside its own hello-world: a process that takes its time, and one that fails."""

import time
from typing import Any

from pygeoapi.process.base import BaseProcessor, ProcessorExecuteError

JSON = "application/json"


def _described(name: str) -> dict[str, Any]:
    schema = {"type": "object", "contentMediaType": JSON}
    return {
        "version": "1",
        "id": name,
        "title": {"en": name},
        "description": {"en": name},
        "jobControlOptions": ["sync-execute", "async-execute"],
        "keywords": [],
        "links": [],
        "inputs": {},
        "outputs": {"echo": {"title": "echo", "description": "echo", "schema": schema}},
        "example": {},
    }


class Rest(BaseProcessor):
    def __init__(self, definition: dict[str, Any]) -> None:
        super().__init__(definition, _described("rest"))

    def execute(self, data: dict[str, Any], outputs: Any = None) -> tuple[str, dict[str, Any]]:
        time.sleep(data["seconds"])
        return JSON, {"id": "echo", "value": "rested"}


class Fail(BaseProcessor):
    def __init__(self, definition: dict[str, Any]) -> None:
        super().__init__(definition, _described("fail"))

    def execute(self, data: dict[str, Any], outputs: Any = None) -> tuple[str, dict[str, Any]]:
        raise ProcessorExecuteError("on purpose")
