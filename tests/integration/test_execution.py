"""Every way in which a task can end is an outcome, written together with RQ's own bookkeeping."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.conftest import Deployment
from tests.support.jobs import run


@pytest.mark.parametrize(
    ("value", "result"),
    [("null", None), ("zero", 0), ("false", False), ("empty", ""), ("list", []), ("text", "grün ✓")],
)
def test_a_result_is_shown_whatever_its_value(
    deployment: Deployment, client: FlaskClient, value: str, result: Any
) -> None:
    """`result` exists exactly when the job succeeded, also where it is null, 0, false or empty."""
    document = run(deployment, client, task="give", value=value)
    assert document["status"] == "succeeded"
    assert document["result"] == result
    assert "error" not in document


@pytest.mark.parametrize("value", ["nan", "object", "surrogate", "circle", "huge integer"])
def test_a_return_value_that_is_not_json_fails_the_job(deployment: Deployment, client: FlaskClient, value: str) -> None:
    """NaN and whatever JSON cannot hold end as result-invalid, not as a success with a text in place of the value."""
    document = run(deployment, client, task="give", value=value)
    assert document["status"] == "failed"
    assert document["error"]["type"] == "result-invalid"
    assert "result" not in document


@pytest.mark.parametrize(
    ("members", "error_type"),
    [
        ({"task": "run_for_ever"}, "timed-out"),
        ({"task": "swallow_exceptions"}, "timed-out"),
        ({"task": "swallow_everything"}, "timed-out"),
        ({"task": "hold_off_signals"}, "timed-out"),
        ({"task": "kill_itself"}, "lost"),
        ({"task": "exit_with", "code": 0}, "lost"),
        ({"task": "exit_with", "code": 1}, "lost"),
        ({"task": "leave_a_child_and_die"}, "lost"),
        ({"task": "leave", "code": 0}, "task-failed"),
        ({"task": "fail", "text": "x"}, "task-failed"),
        ({"task": "give_bytes", "size": 2**20}, "result-too-large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_every_bad_end_has_its_type(
    deployment: Deployment, client: FlaskClient, members: dict[str, Any], error_type: str
) -> None:
    """No way to end leaves a job running for ever or takes a death for a success."""
    document = run(deployment, client, **members)
    assert document["status"] == "failed"
    assert document["error"]["type"] == error_type
    assert "result" not in document
