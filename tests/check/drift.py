"""What the reference server says otherwise of jobs that are not the first, or from one look to the next."""

from __future__ import annotations

import uuid
from typing import Any

from tests.check.engine import FINAL, Record, now


def drifted(record: Record, faults: frozenset[str]) -> dict[str, Any]:
    """The members of the document that stand in it otherwise than they should."""
    members: dict[str, Any] = {}
    if "another id for the slow job" in faults and record.task == "rest":
        members["job_id"] = str(uuid.UUID(int=0))
    if record.status not in FINAL:
        return members
    if "ended_at moves" in faults:
        members["ended_at"] = members["expires_at"] = now()
    if "changes under one ETag" in faults:
        members["seen_at"] = now()
    if "failed and then succeeded" in faults and record.task == "fail" and record.looks > 3:
        members |= {"status": "succeeded", "result": 1}
    return members
