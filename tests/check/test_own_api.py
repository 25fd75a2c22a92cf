"""Our own API holds every point: real gunicorn, real workers, nothing skipped and nothing left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from aj.access import new_key
from aj.check.command import check
from aj.check.point import State
from aj.check.points import ALL
from tests.check.telling import SECRET
from tests.conftest import Deployment
from tests.support.processes import running_api, running_worker


def test_our_own_api_holds_every_point(deploy: Callable[..., Deployment], folder: Path) -> None:
    """With API keys and signed webhooks, at the highest level."""
    key, digest = new_key()
    env = deploy(
        AJ_TASKS="tests.support.checked_tasks",
        AJ_API_KEYS=f"checker:{digest}",
        AJ_WEBHOOK_SECRETS=SECRET,
        AJ_CALLBACK_SCHEDULE_S="0,0.2,0.2,1",
        AJ_WORKERS="2",
    ).env
    options = {
        "--slow-body": {"task": "rest", "seconds": 2},
        "--failing-body": {"task": "fail"},
        "--expiring-body": {"task": "forget_soon"},
    }
    arguments = [each for name, body in options.items() for each in (name, json.dumps(body))]
    with running_worker(env, folder), running_api(env, folder) as (_, url):
        asked = {"AJ_API_KEY": key, "AJ_CHECK_SECRET": SECRET}
        result = CliRunner().invoke(check, [url, "--json", *arguments], env=asked, catch_exceptions=False)
    report = json.loads(result.output)
    otherwise = {each["name"]: each["why"] for each in report["points"] if each["state"] != State.HELD}
    assert (otherwise, report["unplayable"], result.exit_code) == ({}, None, 0)
    assert len(report["points"]) == len(ALL)


def test_limits_that_the_contract_allows_break_no_point(deploy: Callable[..., Deployment], folder: Path) -> None:
    """Where few submissions are taken most is skipped, and nothing of it is told as a fault."""
    env = deploy(AJ_TASKS="tests.support.checked_tasks", AJ_RATE="3/60", AJ_MAX_QUEUED="2").env
    arguments = ("--json", "--slow-body", '{"task": "rest", "seconds": 2}', "--failing-body", '{"task": "fail"}')
    with running_worker(env, folder), running_api(env, folder) as (_, url):
        result = CliRunner().invoke(check, [url, *arguments], catch_exceptions=False)
    report = json.loads(result.output)
    broken = {each["name"]: each["why"] for each in report["points"] if each["state"] == State.BROKEN}
    assert (broken, report["unplayable"], result.exit_code) == ({}, None, 0)
    assert report["counts"]["skipped"] > report["counts"]["held"] > 0
