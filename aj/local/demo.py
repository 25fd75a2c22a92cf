"""`./run demo`: one job from its submission to its webhook, over real HTTP between real processes.

Its store is fresh and temporary, so that it never touches the data of `./run up`; only the receipt stays.
What it prints was received, not made up; where an answer is not what the contract says, it says so and fails.
"""

from __future__ import annotations

import contextlib
import http.client
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aj import clock
from aj.errors import AjError
from aj.local.embedded import ensure_store, is_kept, leave_store
from aj.local.exchange import Answer, Speaker, show
from aj.local.output import say
from aj.local.parts import LOOPBACK, are_listening, start_parts, stop_in_order
from aj.local.preflight import HOOK_LOG, receipts_log, refuse_bad_log, refuse_busy, trouble_with_log
from aj.local.supervise import Ended, Group, Stopped
from aj.local.waiting import wait_for
from aj.settings import Settings
from aj.signature import new_secret

JOB_S, WEBHOOK_S, TIDY_S = 60.0, 30.0, 10.0
NEVER_GIVEN = "00000000-0000-7000-8000-000000000000"  # well-formed, and older than any
KEPT = ("AJ_PORT", "AJ_HOOKSINK_PORT", "AJ_REDIS_SERVER")
LOG_LINES = 15


class Broken(AjError):
    """An answer is not what the contract says."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What the steps of the demonstration share."""

    group: Group
    speaker: Speaker
    callback_url: str
    log: Path


def demo(environ: Mapping[str, str]) -> int:
    """Runs the demonstration; gives the exit code: 0, 1 where something failed, 130 where it was interrupted.

    Raises:
        SettingsError: a setting is wrong, a port is busy, or the store does not start.
        Unheard: nobody reads what is printed.
    """
    asked = Settings.from_env(environ)
    refuse_busy([(LOOPBACK, asked.port, "AJ_PORT"), (LOOPBACK, asked.hooksink_port, "AJ_HOOKSINK_PORT")])
    if environ.get("HOOKSINK_LOG"):
        refuse_bad_log(receipts_log(environ))
    printed: list[str] = []
    # The group comes first: from then on a signal waits until it is looked for, and nothing is left behind.
    with Group(lambda name, line: printed.append(f"{name}: {line}")) as group, _temporary_folder() as folder:
        own = _environment(environ, asked, folder)
        try:
            code = _play(group, Settings.from_env(own), own)
        except (Ended, Broken, OSError, ValueError, http.client.HTTPException) as error:
            say(f"FAILED: {error}\n\nThe last lines of the processes:", *printed[-LOG_LINES:])
            code = 1
        except Stopped:
            say("\nInterrupted; stopping.")
            code = 130
        finally:
            with contextlib.suppress(Stopped):
                stop_in_order(group)
            group.kill()
    if code == 0:
        show("Everything is stopped. ./run up starts the same, to stay.")
    return code


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for the store, which is gone at the end, as is the store."""
    folder = Path(tempfile.mkdtemp(prefix="aj-demo-")).resolve()
    try:
        yield folder
    finally:
        leave_store(folder)
        wait_for(lambda: not is_kept(folder), TIDY_S)  # a part that was killed may have started it just before
        wait_for(lambda: _is_removed(folder), TIDY_S)


def _is_removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _environment(environ: Mapping[str, str], asked: Settings, folder: Path) -> dict[str, str]:
    """The environment without what would make this another deployment than the one that is shown."""
    foreign = {"REDIS_URL", "PORT", "GUNICORN_CMD_ARGS", "HOOKSINK_LOG"}
    kept = {
        name: value
        for name, value in environ.items()
        if name in KEPT or not (name.startswith("AJ_") or name in foreign)
    }
    return {
        **kept,
        "AJ_DATA_DIR": str(folder),
        "AJ_EMBEDDED": "always",
        "AJ_PORT": str(asked.port),
        "AJ_WEB_WORKERS": "1",
        "AJ_CALLBACK_ALLOW": f"{LOOPBACK}:{asked.hooksink_port}",
        "AJ_WEBHOOK_SECRETS": new_secret(),
        "HOOKSINK_LOG": str(_log_for(environ, folder)),
    }


def _log_for(environ: Mapping[str, str], folder: Path) -> Path:
    """Where the receipt goes: where it was asked for, else here; in the temporary folder where that cannot be."""
    log = receipts_log(environ)
    trouble = trouble_with_log(log)
    if trouble is None:
        return log
    show(f"{log} cannot be written ({trouble}), so that the receipt goes to a temporary {HOOK_LOG}.")
    return folder / HOOK_LOG


def _play(group: Group, settings: Settings, environ: Mapping[str, str]) -> int:
    """Starts the parts and goes through the steps."""
    show("One job, from its submission to its webhook. > is sent, < is received.")
    begun_s = clock.monotonic_s()
    start_parts(group, settings, environ)
    ensure_store(settings, environ)
    _expect(are_listening(group, settings), "the API and the receiver do not accept connections")
    api = f"http://{LOOPBACK}:{settings.port}"
    receiver = f"http://{LOOPBACK}:{settings.hooksink_port}"
    show(f"Started in {clock.monotonic_s() - begun_s:.1f} s: store, API ({api}), worker, receiver ({receiver}).")
    say("")
    stage = Stage(group, Speaker(LOOPBACK, settings.port), f"{receiver}/demo", Path(environ["HOOKSINK_LOG"]))
    key = f"demo-{secrets.token_hex(6)}"
    accepted = _submit(stage, key)
    location = accepted.headers["Location"]
    _poll(stage, location)
    _submit_again(stage, key, accepted)
    _ask_unknown(stage)
    _read_receipt(stage, accepted.document["job_id"])
    return 0


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def _begin(number: int, title: str, why: str) -> None:
    show(f"{title}. {why}", f"{number}. ")
    say("")


def _submit(stage: Stage, key: str) -> Answer:
    _begin(1, "Submit", "202 means accepted, not done: Location says where to look, Retry-After when.")
    answer = stage.speaker.send("POST", "/jobs", {"n": 5, "callback_url": stage.callback_url}, key)
    _expect(answer.status == 202, f"POST /jobs was answered {answer.status}, not 202")
    _expect("Location" in answer.headers, "the 202 has no Location")
    return answer


def _poll(stage: Stage, location: str) -> None:
    _begin(2, "Poll", "Retry-After paces the client, and is gone once the result is there.")
    deadline_s = clock.monotonic_s() + JOB_S
    while True:
        answer = stage.speaker.send("GET", location)
        _expect(answer.status == 200, f"GET {location} was answered {answer.status}, not 200")
        if answer.document["status"] in ("succeeded", "failed"):
            break
        _expect(clock.monotonic_s() < deadline_s, f"the job has not ended within {JOB_S:.0f} s")
        pause_s = answer.retry_after_s()
        show(f"... {pause_s} s later", "   ")
        say("")
        stage.group.watch(lambda: False, pause_s)
    _expect(answer.document.get("result") == 25, "the job did not succeed with the result 25")
    _expect("Retry-After" not in answer.headers, "the final answer still has a Retry-After")


def _submit_again(stage: Stage, key: str, first: Answer) -> None:
    document = {"n": 5, "callback_url": stage.callback_url}
    _begin(3, "Send it again", "A client that missed the answer may: the same key brings the same job.")
    again = stage.speaker.send("POST", "/jobs", document, key)
    _expect(again.status == 202, f"the repeated submission was answered {again.status}, not 202")
    _expect(again.document == first.document, "the repeated submission got another answer")
    _expect(again.headers.get("Idempotent-Replayed") == "true", "the repeated answer is not marked as one")
    _begin(4, "Same key, other job", "A key that is used by mistake is refused, never answered with the wrong job.")
    reused = stage.speaker.send("POST", "/jobs", {**document, "n": 6}, key)
    _expect(reused.status == 422, f"the key with another body was answered {reused.status}, not 422")


def _ask_unknown(stage: Stage) -> None:
    _begin(5, "Ask for a job that never was", "404: never heard of it. A job whose time is over would be 410.")
    unknown = stage.speaker.send("GET", f"/jobs/{NEVER_GIVEN}")
    _expect(unknown.status == 404, f"an unknown id was answered {unknown.status}, not 404")


def _read_receipt(stage: Stage, job_id: str) -> None:
    _begin(6, "The webhook", f"The receiver verified its signature and wrote this line to {stage.log.name}.")

    def lines() -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return [line for line in stage.log.read_text(encoding="utf-8").splitlines() if job_id in line]
        return []

    _expect(stage.group.watch(lambda: bool(lines()), WEBHOOK_S, step_s=0.05), f"no webhook came in {WEBHOOK_S:.0f} s")
    show(lines()[0], "   ")
    say("")
    _expect("status=succeeded" in lines()[0], "the webhook does not say that the job succeeded")
    _expect("signature=valid" in lines()[0], "the webhook's signature is not valid")
