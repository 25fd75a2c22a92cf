"""The profiles that come along, against the real servers that they are of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from aj.check.command import check
from tests.check.apis.environment import EnvironmentMissing, folder_of_programs, is_in_ci
from tests.check.apis.servers import celery_with_flower, pygeoapi

# What these servers do otherwise than the contract has it, at the versions that are in requirements.txt.
# A later one may do less of it; anything else that is found broken is a mistake of the checker or of the profile.
LENIENT = {"not-utf8", "duplicate-names", "no-number", "deep-nesting", "lone-surrogate"}
PYGEOAPI = {
    *LENIENT,
    "accepted-body",  # the body is null; the standard wants the status of the job in it
    "not-an-object",  # 500
    "problem-documents",  # as application/json, and without the members of RFC 9457
}
FLOWER = {
    *LENIENT,
    "result-only-at-the-end",  # a job that failed has the exception's arguments as its result
    "unknown-id",  # Celery cannot tell a job that waits from one that never was
    "malformed-id",
    "empty-body",  # 500, since the task wants an argument
    "missing-length",
    "cut-body",  # hangs up without an answer
    "unsupported-method",  # 405 without Allow
    "options",
    "head",
    "cancel-ended",  # says that it was cancelled
}
SHAPE = {
    *("accepted", "readable-at-once", "fresh-ids", "ends", "json-document", "id-in-document", "status-words"),
    *("only-forward", "end-is-final", "not-json", "trailing-bytes", "chunked-body"),
}


@pytest.fixture(scope="module")
def programs() -> Path:
    try:
        return folder_of_programs()
    except EnvironmentMissing as missing:
        if is_in_ci():
            raise
        pytest.skip(str(missing))


def _found(url: str, profile: str, **options: Any) -> dict[str, set[str]]:
    """The names of the points by what was found of them."""
    arguments = [url, "--json", "--profile", profile, "--timeout", "30"]
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", value if isinstance(value, str) else json.dumps(value)]
    result = CliRunner().invoke(check, arguments, catch_exceptions=False)
    report = json.loads(result.output)
    assert (report["unplayable"], result.exit_code) == (None, 1)
    return {state: {each["name"] for each in report["points"] if each["state"] == state} for state in report["counts"]}


def test_an_ogc_api_processes_server_is_understood(programs: Path, folder: Path) -> None:
    """pygeoapi: its whole shape holds, and what it does otherwise is named."""
    with pygeoapi(programs, folder) as url:
        found = _found(
            url,
            "ogc-processes",
            slow_path="/processes/rest/execution",
            slow_body={"inputs": {"seconds": 2}},
            failing_path="/processes/fail/execution",
            failing_body={"inputs": {}},
        )
    assert found["broken"] <= PYGEOAPI
    assert "duplicate-names" in found["broken"]
    assert {*SHAPE, "location", "result-only-at-the-end", "unknown-id", "malformed-id", "head"} <= found["held"]


def test_celery_behind_flower_is_understood(programs: Path, folder: Path) -> None:
    """Its shape holds, and the checker sees that Celery takes any id for one of a job that waits."""
    with celery_with_flower(programs, folder) as url:
        found = _found(
            url,
            "celery-flower",
            slow_path="/api/task/async-apply/rest",
            slow_body={"args": [2]},
            failing_path="/api/task/async-apply/fail",
            failing_body={"args": []},
        )
    assert found["broken"] <= FLOWER
    assert {"unknown-id", "result-only-at-the-end"} <= found["broken"]
    assert {*SHAPE, "accepted-body", "error-when-failed", "etag", "not-modified", "cancel"} <= found["held"]
