"""A store whose access rules leave out a command: readiness says so, whichever it is, and leaves nothing behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError, ResponseError

from aj.local.embedded import ServerProcess, start_server
from aj.store.health import MEANINGS, _in_words
from tests.conftest import Deployment
from tests.support.jobs import submit, work_off
from tests.support.own_store import all_that_is_stored, deployment_on
from tests.support.processes import ROOT
from tests.support.sweeping import make_sweep

DENIED = {"store": "does not permit the user what is needed"}
# What connections need. `subscribe` is not needed to submit or to run a job: who waits is answered later without it.
OF_CONNECTIONS = {"auth", "hello", "ping", "select", "client", "subscribe", "unsubscribe", "config", "acl"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with start_server(tmp_path / "store") as started:
        yield started


@pytest.fixture
def owner(server: ServerProcess) -> Deployment:
    """The deployment as its operator sees it, who may do everything; a worker is alive."""
    deployment = deployment_on(server)
    worker = deployment.worker()
    worker.register_birth()
    worker.heartbeat()
    return deployment


@pytest.fixture
def client(owner: Deployment) -> FlaskClient:
    """The API under a user of its own, who may do everything with the keys and channels that are ours and RQ's."""
    rules(owner, "reset", "on", ">secret", "~aj:*", "~rq:*", "&aj:*", "&rq:*", "+@all", "-@dangerous", "+info")
    return owner.client(AJ_REDIS_URL=owner.env["AJ_REDIS_URL"].replace("unix://", "unix://app:secret@"))


def rules(owner: Deployment, *words: str) -> None:
    owner.redis.execute_command("ACL", "SETUSER", "app", *words)  # type: ignore[no-untyped-call]


def checks(client: FlaskClient) -> dict[str, str]:
    answer = client.get("/readyz")
    return {} if answer.status_code == 200 else dict((answer.json or {})["checks"])


def commands(owner: Deployment) -> set[str]:
    """Every command that the server has carried out since it was last asked to forget them."""
    counted: Any = owner.redis.info("commandstats")
    owner.redis.config_resetstat()
    names = {name.removeprefix("cmdstat_") for name in counted}
    return {name for name in names if name.partition("|")[0] not in OF_CONNECTIONS}


def test_a_missing_permission_is_noticed_whichever_it_is(owner: Deployment, client: FlaskClient) -> None:
    """Each command that the look tries, denied alone: the same words, nothing left in the store; then it is ready."""
    assert checks(client) == {}
    commands(owner)
    assert checks(client) == {}
    tried, before = commands(owner), all_that_is_stored(owner)
    assert {"evalsha", "hset", "zadd", "rpush", "time", "set", "del", "blmove", "multi", "exec"} <= tried
    for command in tried:
        rules(owner, f"-{command}")
        assert (command, checks(client)) == (command, DENIED)
        rules(owner, f"+{command}")
    assert all_that_is_stored(owner) == before
    assert checks(client) == {}


@pytest.mark.parametrize(
    "allowed", [("~rq:*", "&aj:*"), ("~aj:*", "&aj:*"), ("~aj:*", "~rq:*")], ids=["ours", "RQ's", "channels"]
)
def test_keys_and_channels_are_needed_too(owner: Deployment, client: FlaskClient, allowed: tuple[str, ...]) -> None:
    """A user who may use every command, but not with our keys, RQ's keys or our channels."""
    rules(owner, "resetkeys", "resetchannels", *allowed)
    assert checks(client) == DENIED


def test_whatever_a_job_needs_is_tried(owner: Deployment, client: FlaskClient) -> None:
    """The look knows each command of our scripts, and each that a submission, a run and a sweep have used."""
    checks(client)
    commands(owner)
    checks(client)
    tried = commands(owner)
    submit(client, n=5, key="k", callback_url="http://127.0.0.1:1/")
    submit(client, task="fail", text="x")
    work_off(owner)
    make_sweep(owner).once()
    client.get("/jobs")
    scripts = "".join(path.read_text("utf-8") for path in (ROOT / "aj/store/lua").glob("*.lua"))
    ours = {name.lower() for name in re.findall(r"redis\.p?call\('([A-Z]+)'", scripts)}
    assert (commands(owner) | ours) - tried == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The user executing the script can't run this command or subcommand script: f, on @user_script:7.", "NOPERM"),
        ("ACL failure in script: User app has no permissions to run the 'hset' command", "NOPERM"),
        ("@user_script: 7: The user executing the script can't access at least one of the keys", "NOPERM"),
        ("@user_script: 7: -NOPERM The user executing the script can't run this command or subcommand", "NOPERM"),
        ("@user_script: 7: -READONLY You can't write against a read only replica.", "READONLY"),
        ("@user_script: 7: -OOM command not allowed when used memory > 'maxmemory'.", "OOM"),
        ("@user_script: 7: -MISCONF Redis is configured to save RDB snapshots", "MISCONF"),
        ("NOREPLICAS Not enough good replicas to write.", "NOREPLICAS"),
    ],
)
def test_an_error_inside_a_script_means_what_it_means_outside(text: str, words: str) -> None:
    """Stores before 7.0 put the place before it, and all of them speak of permissions in other words."""
    meanings = {
        "NOPERM": MEANINGS[NoPermissionError],
        "READONLY": MEANINGS[ReadOnlyError],
        "OOM": MEANINGS[OutOfMemoryError],
    }
    assert _in_words(ResponseError(text)) == meanings.get(words, f"refuses to work: {words}")
