"""Somebody else's fuzzer plays the document against the live API and finds nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from aj.access import new_key
from aj.blueprint import ROUTES
from tests.conftest import Deployment
from tests.support import schemathesis_hooks, typed_tasks
from tests.support.processes import ROOT, clean_env, running_api, running_worker

PROGRAM = str(Path(sys.executable).with_name("st"))
CONFIG = ROOT / "tests/support/schemathesis.toml"


def test_schemathesis_finds_no_answer_that_the_document_does_not_promise(
    deploy: Callable[..., Deployment], folder: Path
) -> None:
    """Good and bad requests to every route, alone and in sequences, with keys on, while a worker runs the jobs."""
    key, digest = new_key()
    deployment = deploy(AJ_API_KEYS=f"alice:{digest}", AJ_TASKS=typed_tasks.__name__, AJ_CALLBACK_SCHEDULE_S="0,0")
    env = {"AJ_TEST_KEY": key, "SCHEMATHESIS_HOOKS": schemathesis_hooks.__name__}
    with running_worker(deployment.env, folder), running_api(deployment.env, folder) as (api, url):
        options = ["--checks=all", "--max-examples=40", "--seed=1", "--generation-database=none", "--no-color"]
        done = subprocess.run(
            [PROGRAM, f"--config-file={CONFIG}", "run", f"{url}/openapi.json", *options],
            cwd=folder,
            env=clean_env(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    assert f"Tested: {len(ROUTES) - 1}" in re.sub(" +", " ", done.stdout), "all but the document itself"
    assert "Traceback" not in api.output
