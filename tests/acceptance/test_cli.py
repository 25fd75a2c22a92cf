"""`aj` as scripts use it: real processes at the end of pipes, against a real API with keys and a real worker."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from aj.access import new_key
from aj.local.embedded import ServerProcess
from tests.support.command_line import AJ, LONG_S, CommandLine
from tests.support.processes import ROOT, clean_env, free_port, running, running_api
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

KEY, DIGEST = new_key()
NEVER_GIVEN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def aj(store: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line, with an API of its own; the worker is `aj worker`."""
    folder = tmp_path_factory.mktemp("cli")
    env = {
        "AJ_REDIS_URL": store.url,
        "AJ_PREFIX": "cli",
        "AJ_QUEUES": "q:cli",
        "AJ_TASKS": "tests.support.tasks",
        "AJ_CALLBACK_ALLOW": "127.0.0.0/8",
        "AJ_API_KEYS": f"shop:{DIGEST}",
        "AJ_WORKERS": "2",
    }
    with running_api(env, folder) as (_, url), running([*AJ, "worker"], env, folder) as worker:
        wait_until(lambda: "Listening on" in worker.output, what="a worker that listens")
        yield CommandLine({"AJ_URL": url, "AJ_API_KEY": KEY})


def test_a_job_is_submitted_and_its_result_printed(aj: CommandLine) -> None:
    """The data on standard output, the talk beside it."""
    done = aj("submit", "n=5", "--wait")
    assert (done.code, done.out) == (0, "25\n")
    assert done.err.splitlines()[-1] == "succeeded"


def test_a_job_is_named_by_its_url_or_its_id(aj: CommandLine) -> None:
    """What `submit` prints goes into every other command."""
    url = aj("submit", "n=6").out.strip()
    assert url.startswith(f"{aj.env['AJ_URL']}/jobs/")
    for name in (url, url.rpartition("/")[2]):
        done = aj("wait", name)
        assert (done.code, done.out) == (0, "36\n")


def test_a_body_comes_from_standard_input(aj: CommandLine) -> None:
    """And the line has the last word."""
    done = aj("submit", "--body", "-", "--wait", "n=7", stdin='{"task": "square", "n": 1}')
    assert (done.code, done.out) == (0, "49\n")


def test_the_same_key_is_the_same_job(aj: CommandLine) -> None:
    """As the Idempotency-Key has it."""
    first, again = (aj("submit", "n=8", "--key", "order-8") for _ in range(2))
    assert (first.code, first.out) == (0, again.out)


def test_status_shows_all_that_is_known(aj: CommandLine) -> None:
    """A line for each thing."""
    url = aj("submit", "n=9", "--metadata", "order=17", "--metadata", "name=x").out.strip()
    aj("wait", url)
    done = aj("status", url)
    shown = dict(each.split(maxsplit=1) for each in done.out.splitlines())
    assert (shown["job"], shown["status"], shown["task"]) == (url.rpartition("/")[2], "succeeded", "square")
    assert (shown["result"], shown["metadata"]) == ("81", '{"order": 17, "name": "x"}')
    assert done.code == 0
    assert done.err == ""


def test_a_job_that_failed_is_exit_code_1(aj: CommandLine) -> None:
    """Why, on standard error; a look at it is no failure of the look."""
    done = aj("submit", "--task", "fail", "text=sold out", "public=true", "--wait")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1].startswith("failed: task-failed: ")
    assert "sold out" in done.err
    assert aj("status", aj("list", "--task", "fail", "--json").document["job_id"]).code == 0


def test_a_wrong_call_is_exit_code_2(aj: CommandLine) -> None:
    """Told in one line, and nothing is asked of the API; its key goes to no other."""
    for arguments in (["submit", "n"], ["status", f"http://127.0.0.1:1/jobs/{NEVER_GIVEN}"]):
        done = aj(*arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("aj: ")
        assert done.err.count("\n") == 1
        assert KEY not in done.err


def test_a_refusal_is_exit_code_3(aj: CommandLine) -> None:
    """With the field that is wrong."""
    done = aj("submit", "n=five")
    assert (done.code, done.out) == (3, "")
    assert "#/n" in done.err
    stranger = aj("submit", "n=5", AJ_API_KEY="aj_nobody")
    assert stranger.code == 3
    assert "AJ_API_KEY" in stranger.err


def test_a_job_that_is_not_there_is_exit_code_4(aj: CommandLine) -> None:
    """Whichever command asks."""
    for command in ("status", "wait", "cancel", "deliveries", "redeliver"):
        done = aj(command, NEVER_GIVEN)
        assert (command, done.code, done.out) == (command, 4, "")
        assert done.err.startswith("aj: ")


def test_a_job_that_takes_longer_than_one_waits_is_exit_code_5(aj: CommandLine, tmp_path: Path) -> None:
    """It goes on, and can be waited for again."""
    end = tmp_path / "end"
    done = aj("submit", "--task", "wait_for_file", f"path={end}", "--wait", "--timeout", "0.5")
    assert (done.code, done.out) == (5, "")
    url = done.err.split()[-1]
    end.touch()
    assert aj("wait", url).out == '"seen"\n'


def test_an_api_that_is_not_there_is_exit_code_6(aj: CommandLine) -> None:
    """Within the time that was given for it; the key with which asking again is safe is told."""
    away = f"http://127.0.0.1:{free_port()}"
    done = aj("submit", "n=5", "--url", away, "--patience", "0.5", "--key", "order-99")
    assert (done.code, done.out) == (6, "")
    assert "order-99" in done.err
    assert done.err.startswith(f"aj: POST {away}/jobs: ")
    assert done.err.count("; it is tried again for ") == 1
    assert aj("list", "--url", away, "--patience", "0.5").code == 6


def test_an_answer_that_is_none_of_the_contract_is_exit_code_6(aj: CommandLine, receiver: Receiver) -> None:
    """Something else listens there; what it did with the submission is not known."""
    done = aj("submit", "n=5", "--url", receiver.url("/api"), "--key", "order-98")
    assert (done.code, done.out) == (6, "")
    assert "--key order-98" in done.err
    assert [each.path for each in receiver.received] == ["/api/jobs"]


def test_ctrl_c_is_exit_code_130_and_the_job_goes_on(aj: CommandLine, tmp_path: Path) -> None:
    """Its URL is told, to pick it up again."""
    end = tmp_path / "end"
    with aj.started("submit", "--task", "wait_for_file", f"path={end}", "--wait") as process:
        assert process.stderr is not None
        assert any("running" in line for line in process.stderr)  # no further than that
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONG_S)
    assert (process.returncode, out) == (130, "")
    last = err.splitlines()[-1]
    assert "the job goes on: aj wait " in last
    end.touch()
    assert aj("wait", last.split()[-1]).out == '"seen"\n'


def test_talk_in_a_pipe_is_plain_lines_at_changes(aj: CommandLine, tmp_path: Path) -> None:
    """No cursor is moved in a log file, and nothing is said twice."""
    end = tmp_path / "end"
    with aj.started("submit", "--task", "wait_for_file", f"path={end}", "--wait") as process:
        wait_until(lambda: Path(f"{end}.started").exists(), what="a running job")
        assert process.stderr is not None
        heard = [process.stderr.readline()]
        while "running" not in heard[-1]:
            heard.append(process.stderr.readline())
        end.touch()
        out, rest = process.communicate(timeout=LONG_S)
    lines = [*heard, *rest.splitlines(keepends=True)]
    assert lines[-1] == "succeeded\n"
    assert len(set(lines)) == len(lines)
    assert not {"\r", "\x1b"} & set("".join(lines))
    assert out == '"seen"\n'


def test_cancel_ends_a_job(aj: CommandLine, tmp_path: Path) -> None:
    """And says how it ended; a second time, and after another end, the API's answer counts."""
    url = aj("submit", "--task", "wait_for_file", f"path={tmp_path / 'end'}").out.strip()
    done = aj("cancel", url)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("failed: cancelled")
    assert aj("wait", url).code == 1
    ended = aj("submit", "n=5", "--wait", "--json").document["job_id"]
    assert aj("cancel", ended).code == 3


def test_webhooks_are_listed_and_sent_again(aj: CommandLine, receiver: Receiver) -> None:
    """Each attempt with its answer."""
    url = aj("submit", "n=5", "--callback-url", receiver.url(), "--wait", "--json").document["job_id"]
    wait_until(lambda: aj("status", url, "--json").document["callback"]["state"] == "delivered", what="a delivery")
    assert aj("redeliver", url).code == 0
    wait_until(lambda: len(receiver.received) == 2, what="a second delivery")
    wait_until(lambda: len(aj("deliveries", url, "--json").document) == 2, what="two attempts on record")
    done = aj("deliveries", url)
    assert [each.split()[-1] for each in done.out.splitlines()] == ["answer", "200", "200"]
    assert aj("redeliver", url, "--json").document["job_id"] == url
    without = aj("submit", "n=5", "--wait", "--json").document["job_id"]
    assert aj("redeliver", without).code == 3
    assert aj("deliveries", without, "--json").document == []


def test_jobs_are_listed(aj: CommandLine) -> None:
    """Newest first, as many as are wanted, and it is told where there are more."""
    ids = [aj("submit", "n=1").out.strip().rpartition("/")[2] for _ in range(3)]
    done = aj("list", "--limit", "2", "--task", "square")
    head, *rows = done.out.splitlines()
    assert head.split() == ["job", "status", "created", "task"]
    assert [row.split()[0] for row in rows] == [ids[2], ids[1]]
    assert "more than 2" in done.err
    assert len(aj("list", "--all", "--json").out.splitlines()) > 3


def test_json_is_one_document_on_one_line(aj: CommandLine) -> None:
    """Of every command, and of its errors."""
    url = aj("submit", "n=5", "--json").document["job_id"]
    assert aj("wait", url, "--json").document["result"] == 25
    assert aj("status", url, "--json").document["status"] == "succeeded"
    assert all(json.loads(each)["job_id"] for each in aj("list", "--json").out.splitlines())
    refused = aj("submit", "n=five", "--json")
    assert (refused.code, refused.document["error"]["status"]) == (3, 422)
    assert aj("status", NEVER_GIVEN, "--json").document["error"]["type"] == "urn:problem-type:aj:job-unknown"
    assert aj("cancel", url, "--json").document["error"]["status"] == 409
    away = aj("status", url, "--json", "--patience", "0.3", "--url", f"http://127.0.0.1:{free_port()}")
    assert (away.code, away.document["error"]["type"]) == (6, "unreachable")
    assert aj("submit", "--task", "fail", "text=x", "--wait", "--json").document["error"]["type"] == "task-failed"
    assert aj("secret", "new", "--json").document["secret"].startswith("whsec_")
    assert set(aj("key", "new", "shop", "--json").document) == {"name", "key", "aj_api_keys"}


def test_a_key_is_read_from_a_file(aj: CommandLine, tmp_path: Path) -> None:
    """So it stands neither in the environment nor in the list of processes."""
    (tmp_path / "key").write_text(f"{KEY}\n")
    assert aj("list", "--api-key-file", str(tmp_path / "key"), AJ_API_KEY="aj_wrong").code == 0
    assert aj("list", "--api-key-file", "-", stdin=KEY, AJ_API_KEY="").code == 0
    assert aj("list", "--api-key", KEY, AJ_API_KEY="").code == 0
    assert aj("list", AJ_API_KEY="").code == 3


@pytest.fixture
def nobody() -> Iterator[int]:
    """A pipe at whose other end nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def test_a_reader_who_has_seen_enough_is_no_error(aj: CommandLine, nobody: int) -> None:
    """`aj list | head -1` ends quietly."""
    aj("submit", "n=5")
    assert aj.into(nobody, "list") == (141, "")


def test_nobody_at_the_other_end_of_anything_is_no_error_either(aj: CommandLine, nobody: int) -> None:
    """`aj wait JOB 2>&1 | true` too; the exit code stays one of the table."""
    url = aj("submit", "n=5").out.strip()
    assert aj.into(nobody, "wait", url, talk=nobody) == (141, "")
    assert aj.into(subprocess.DEVNULL, "wait", url, talk=nobody) == (0, "")
    assert aj.into(subprocess.DEVNULL, "list", "--limit", "0", talk=nobody) == (2, "")


def test_ctrl_c_during_a_submission_tells_the_key_with_which_it_may_be_repeated(aj: CommandLine) -> None:
    """Nobody knows whether the job was accepted."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with aj.started("submit", "n=5", "--url", url) as process:
            connection, _ = silent.accept()
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LONG_S)
        connection.close()
    assert (process.returncode, out) == (130, "")
    assert re.search(r"aj: interrupted; .* --key [0-9a-f-]{36} is the same job\n$", err)


def test_a_full_disk_is_told(aj: CommandLine) -> None:
    """Nobody takes an empty file for an empty answer."""
    with Path("/dev/full").open("w") as full:
        code, talk = aj.into(full, "secret", "new")
    assert code == 74
    assert talk.startswith("aj: the output cannot be written: ")


def test_text_that_the_locale_lacks_is_escaped(aj: CommandLine) -> None:
    """Data are the same JSON, all else is readable."""
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = aj("submit", "--task", "give", "value=text", "--wait", **ascii_only)
    assert (done.code, done.out) == (0, '"gr\\u00fcn \\u2713"\n')
    failed = aj("submit", "--task", "fail", "text=grün", "public=true", "--wait", "--json").document["job_id"]
    done = aj("status", failed, **ascii_only)
    assert done.code == 0
    assert r"gr\xfcn" in done.out


def test_messages_of_tasks_cannot_steer_a_terminal(aj: CommandLine) -> None:
    """Neither where a job fails, nor in its result."""
    done = aj("submit", "--task", "fail", "--text", "text=\x1b[2J\x9b", "public=true", "--wait")
    shown = aj("status", aj("list", "--task", "fail", "--json", "--limit", "1").document["job_id"]).out
    for text in (done.err, shown):
        assert r"\x1b[2J\x9b" in text
        assert not {"\x1b", "\x9b"} & set(text)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("aj sta", "status"),
        ("aj submit --call", "--callback-url"),
        ("aj submit --task squ", "square"),
        ("aj submit --task=squ", "square"),
        ("aj submit --url {url} --task squ", "square"),
        ("aj submit 'name=a b' --url={url} --task ", "square"),
    ],
)
def test_shells_are_told_what_could_be_meant(aj: CommandLine, words: str, offered: str) -> None:
    """Commands, options, and tasks as the API has them; on a busy machine its second may be over at the first try."""
    line = words.format(url=aj.env["AJ_URL"])
    wait_until(lambda: offered in _completed(aj, line), what=f"{offered} for {words}")


def test_jobs_are_completed_by_their_ids(aj: CommandLine) -> None:
    """The newest ones; where the API is away there are none, and no error."""
    job_id = aj("submit", "n=5").out.strip().rpartition("/")[2]
    wait_until(lambda: job_id in _completed(aj, f"aj wait {job_id[:30]}"), what="the id")
    assert _completed(CommandLine({"AJ_URL": f"http://127.0.0.1:{free_port()}"}), "aj wait 0") == [""]


def _completed(aj: CommandLine, words: str) -> list[str]:
    done = aj(_AJ_COMPLETE="bash_complete", COMP_WORDS=words)
    assert (done.code, done.err) == (0, "")
    return [each.partition(",")[2] for each in done.out.splitlines()]


@pytest.mark.parametrize("words", ["status --help", "check --help", "check {url} --level basic --brief"])
def test_what_cannot_be_written_has_an_exit_code_for_every_command(aj: CommandLine, words: str) -> None:
    """Also what is not data, such as help, and the report of the checker: 141 and 74, and no verdict of theirs."""
    command = " ".join([*map(shlex.quote, AJ), words.format(url=aj.env["AJ_URL"])])
    for after, code in (("| true", 141), ("> /dev/full", 74)):
        script = f"{command} {after}; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", script], env=clean_env(aj.env), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == [str(code)], done.stderr
        assert "Traceback" not in done.stderr


def test_a_secret_that_nobody_can_be_shown_is_no_success(aj: CommandLine) -> None:
    """Standard output is closed."""
    script = " ".join([*map(shlex.quote, AJ), "secret", "new", ">&-"])
    assert subprocess.run(["sh", "-c", script], env=clean_env(aj.env), cwd=ROOT, check=False).returncode == 74
