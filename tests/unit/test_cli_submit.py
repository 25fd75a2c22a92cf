"""`aj submit` where something is amiss: the fate of the job is not known, standard input is closed, time is short."""

from __future__ import annotations

import json
import subprocess

import pytest

from aj.cli import main, submit
from aj.cli.exits import Exit
from tests.support.command_line import AJ
from tests.support.processes import ROOT, clean_env
from tests.support.scripted_server import Reply, answer, hanging, scripted

ID = "01a22875-8ab0-7b86-a00f-efef3fad16ff"
RUNNING = {"job_id": ID, "status": "running"}


@pytest.mark.parametrize("status", [200, 407, 500, 520, 524])
def test_the_key_is_told_where_the_job_may_have_been_accepted(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The one that was made, since nobody gave any."""
    with scripted(answer(status, b"<html></html>", Content_Type="text/html")) as server:
        assert main(["submit", "n=5", "--url", server.url]) == Exit.NO_ANSWER
    key = json.loads(server.asked[0].headers["idempotency-key"])
    assert f"with --key {key} is the same job" in capsys.readouterr().err


def test_it_is_not_told_where_no_job_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The same again would bring the same."""
    with scripted(answer(422, {"detail": "No."})) as server:
        assert main(["submit", "n=5", "--url", server.url]) == Exit.REFUSED
    assert "--key" not in capsys.readouterr().err


def test_the_time_of_a_wait_begins_with_the_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server holds of it is not waited for once more."""
    now_s = [1000.0]
    left_s: list[float | None] = []

    def wait(_api: object, _job: object, timeout_s: float | None) -> Exit:
        left_s.append(timeout_s)
        return Exit.NOT_ENDED

    class Held:
        url, document, status = "http://host/jobs/x", RUNNING, "running"

        def submit(self, *_: object, **__: object) -> Held:
            now_s[0] += 1.2
            return self

    monkeypatch.setattr("aj.clock.monotonic_s", lambda: now_s[0])
    monkeypatch.setattr("aj.cli.api.Api.client", Held())
    monkeypatch.setattr(submit, "wait_for", wait)
    for timeout in (["--timeout", "3"], ["--timeout", "1"], []):
        assert main(["submit", "n=5", "--wait", *timeout]) == Exit.NOT_ENDED
    assert left_s == [pytest.approx(1.8), 0.0, None]


@pytest.mark.parametrize("reply", [hanging, b""], ids=["says nothing", "hangs up"])
def test_nor_does_a_submission_last_longer(reply: Reply, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a job of which nothing is known in time, the key is told."""
    with scripted(reply) as server:
        assert main(["submit", "n=5", "--url", server.url, "--wait", "--timeout", "0.5"]) == Exit.NOT_ENDED
    key = json.loads(server.asked[0].headers["idempotency-key"])
    assert f"with --key {key} is the same job" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reply", "patience"), [(b"", "0.5"), (answer(503, {"detail": "No."}, Retry_After="60"), "30")]
)
def test_where_it_is_not_the_time_that_is_over_the_code_says_so(reply: Reply, patience: str) -> None:
    """The patience with an API that does not answer, or an API that says no."""
    with scripted(reply) as server:
        words = ["--url", server.url, "--wait", "--timeout", "9", "--patience", patience]
        assert main(["submit", "n=5", *words]) == Exit.NO_ANSWER


@pytest.mark.parametrize("option", ["--body", "--api-key-file"])
@pytest.mark.parametrize("closed", ["<&-", "0> /dev/null"])
def test_standard_input_that_cannot_be_read_is_a_wrong_call(option: str, closed: str) -> None:
    """Told in a line, and nothing is asked."""
    command = " ".join([*AJ, "submit", option, "-", "--url", "http://127.0.0.1:1", closed])
    done = subprocess.run(
        ["sh", "-c", command], env=clean_env({}), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("aj: ")
