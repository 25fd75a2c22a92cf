"""`If-None-Match` on a status document: nothing is sent again that the caller has, and nothing is held back."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from tests.conftest import Deployment
from tests.support.jobs import run, submit, work_off

NOBODYS_ID = "018f2b5e-0000-7000-8000-000000000000"
KEPT_ON_304 = ("ETag", "Cache-Control", "Retry-After")


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "condition",
    ["{tag}", "W/{tag}", '"other", {tag}', '"a,b" , W/{tag},"c"', "*"],
    ids=lambda text: text.format(tag="tag"),
)
def test_a_match_gives_304(
    deployment: Deployment, client: FlaskClient, ended: bool, method: str, condition: str
) -> None:
    """No body; the headers by which a cache and a polling client go on, Retry-After among them while it is active."""
    location = f"/jobs/{submit(client, n=5)}"
    if ended:
        work_off(deployment)
    full = client.get(location)
    tag = full.headers["ETag"].removeprefix("W/")
    short = client.open(location, method=method, headers={"If-None-Match": condition.format(tag=tag)})
    assert (short.status_code, short.data) == (304, b"")
    assert {name: short.headers.get(name) for name in KEPT_ON_304} == {
        name: full.headers.get(name) for name in KEPT_ON_304
    }
    assert ("Retry-After" in short.headers) is not ended


@pytest.mark.parametrize("condition", ['"other"', 'W/"other", "another"', '""', "", "garbage", "{bare}"])
def test_no_match_gives_the_document(client: FlaskClient, condition: str) -> None:
    """What cannot be read as the tag is no match either: the caller gets one document too many, not one too few."""
    location = f"/jobs/{submit(client, n=5)}"
    full = client.get(location)
    bare = full.headers["ETag"].removeprefix("W/").strip('"')[:-1]
    answer = client.get(location, headers={"If-None-Match": condition.format(bare=bare)})
    assert answer.status_code == 200
    assert answer.data == full.data


def test_a_change_ends_the_304s(deployment: Deployment, client: FlaskClient) -> None:
    """The tag of the queued job does not match the ended one."""
    location = f"/jobs/{submit(client, n=5)}"
    condition = {"If-None-Match": client.get(location).headers["ETag"]}
    assert client.get(location, headers=condition).status_code == 304
    work_off(deployment)
    answer = client.get(location, headers=condition)
    assert answer.status_code == 200
    assert (answer.json or {})["result"] == 25


@pytest.mark.parametrize("condition", ["*", '"x"'])
def test_a_condition_does_not_hide_a_404(client: FlaskClient, condition: str) -> None:
    """A precondition is looked at only where the answer would be a success. Source: RFC 9110 section 13.2.1."""
    assert client.get(f"/jobs/{NOBODYS_ID}", headers={"If-None-Match": condition}).status_code == 404
    assert client.get("/jobs/x", headers={"If-None-Match": condition}).status_code == 404


def test_a_condition_does_not_hide_a_410(deployment: Deployment, client: FlaskClient) -> None:
    """A poller that holds the last tag learns that the result is gone, and is not told to keep what it has."""
    location = f"/jobs/{run(deployment, client, n=5)['job_id']}"
    tag = client.get(location).headers["ETag"]
    deployment.redis.delete(f"{deployment.settings.prefix}:job:{location.rpartition('/')[2]}")
    for condition in ("*", tag):
        assert client.get(location, headers={"If-None-Match": condition}).status_code == 410
