"""A small real deployment that is given marked values and made to fail in every way, and all that it said."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import redis
import requests

from aj.job import new_job_id
from aj.local.embedded import start_server
from tests.support.processes import Running, accepts, clean_env, free_port, running, running_worker
from tests.support.receiver import Received, Receiver, receiving
from tests.support.waiting import wait_until
from tests.unit import egress_receivers


def mark(kind: str) -> str:
    """A word that stands nowhere else; the same in every process, since names of tests are made of it."""
    return f"{kind}{sha256(kind.encode()).hexdigest()[:10]}"


ARGUMENT, TEXT, RESULT, METADATA = mark("Argument"), mark("Text"), mark("Result"), mark("Metadata")
PATH, QUERY, USER, KEY, PASSWORD = mark("Path"), mark("Query"), mark("User"), mark("Key"), mark("Password")
SECRET_WORD = mark("SecretSecretSecret")
SECRET = "whsec_" + base64.b64encode(SECRET_WORD.encode()).decode()
SECRETS = (SECRET_WORD, SECRET.removeprefix("whsec_"))
NEVER = (ARGUMENT, PATH, QUERY, USER, KEY, PASSWORD, *SECRETS)
FINAL = ("succeeded", "failed")

BROKEN_HEADERS = b"HTTP/1.1 500 No\r\n: no name\r\nno colon\r\nContent-Length: 0\r\n\r\n"


@dataclass(slots=True)
class Evidence:
    """What was said: to callers, in logs, by RQ's tools, to the receiver; and what the store holds."""

    answers: list[requests.Response] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    stored: str = ""
    key_names: str = ""
    rq_info: str = ""
    commands: str = ""
    webhooks: list[Received] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)

    def documents(self) -> dict[str, dict[str, Any]]:
        """The last document of each job, by what the test calls the job."""
        found = {each.json().get("job_id"): each.json() for each in self.answers if each.status_code == 200}
        return {name: found[job_id] for name, job_id in self.jobs.items()}


class Caller:
    """Asks the API and keeps every answer."""

    def __init__(self, base: str, evidence: Evidence) -> None:
        self._base, self._evidence = base, evidence

    def post(self, body: object, **headers: str) -> requests.Response:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers.setdefault("Content-Type", "application/json")
        answer = requests.post(f"{self._base}/jobs", data=sent, headers=headers, timeout=10)
        self._evidence.answers.append(answer)
        return answer

    def get(self, path: str) -> requests.Response:
        answer = requests.get(f"{self._base}{path}", timeout=10)
        self._evidence.answers.append(answer)
        return answer

    def submit(self, name: str, key: str | None = None, **members: object) -> None:
        headers = {} if key is None else {"Idempotency-Key": key}
        answer = self.post({"metadata": {"of": METADATA}, **members}, **headers)
        assert answer.status_code == 202, answer.text
        self._evidence.jobs[name] = answer.json()["job_id"]

    def has_ended(self, job_id: str) -> bool:
        document = requests.get(f"{self._base}/jobs/{job_id}", timeout=10).json()
        return document["status"] in FINAL and document.get("callback", {}).get("state") != "pending"


def submit_all(caller: Caller, sink: str, others: dict[str, str]) -> None:
    """One job for each way to end, and one for each thing that can go wrong with its webhook."""
    hidden = f"/{PATH}?token={QUERY}"
    caller.submit("works", KEY, task="give", argument=ARGUMENT, result=RESULT, callback_url=sink + hidden)
    ends = ("fail_twice", "take_too_long", "die", "give_no_json", "give_too_much")
    caller.submit("fail", task="fail", argument=ARGUMENT, reversed_text=TEXT[::-1], callback_url=sink + hidden)
    for task in ends:
        caller.submit(task, task=task, argument=ARGUMENT, callback_url=sink + hidden)
    for name, url in others.items():
        caller.submit(name, task="give", argument=ARGUMENT, result=RESULT, callback_url=url + hidden)


def be_refused(caller: Caller) -> None:
    """Every refusal, with marked values in what is wrong."""
    fine = {"task": "give", "argument": ARGUMENT, "result": RESULT}
    replayed = caller.post({**fine, "argument": ARGUMENT + "2"}, **{"Idempotency-Key": KEY})
    assert replayed.status_code == 422
    for url in (
        f"http://{USER}:{PASSWORD}@127.0.0.1:9/{PATH}?{QUERY}",
        f"ftp://127.0.0.1/{PATH}?{QUERY}",
        f"http://127.0.0.1:9/{PATH}?{QUERY}#fragment",
        f"http://10.0.0.1/{PATH}?{QUERY}",
        f"http://[::1]/{PATH}?{QUERY}\n",
        f"http://127.0.0.1:9/{PATH}?{QUERY}" + "x" * 2048,
    ):
        assert caller.post({**fine, "callback_url": url}).status_code == 422
    for members in ({"argument": [ARGUMENT]}, {"metadata": [ARGUMENT]}, {"metadata": {"m": ARGUMENT * 999}}):
        assert caller.post({**fine, **members}).status_code == 422
    for body in (
        b"",
        f'{{"argument": "{ARGUMENT}" '.encode(),
        f'"{ARGUMENT}"'.encode(),
        f"{ARGUMENT}\xff".encode("latin-1"),
    ):
        assert caller.post(body).status_code in (400, 422)
    for key in (f'"{KEY}', f"{KEY} {KEY}", KEY * 30):
        assert caller.post(fine, **{"Idempotency-Key": key}).status_code == 400
    assert caller.post(fine, **{"Content-Type": "text/plain"}).status_code == 415
    assert caller.post({**fine, "argument": ARGUMENT * 10_000}).status_code == 413


def break_what_is_stored(client: redis.Redis, caller: Caller, evidence: Evidence) -> None:
    """Payloads and hashes as no program of ours writes them."""
    with paused(client):
        for name, data in (("old", {"old": ARGUMENT}), ("garbage", ARGUMENT)):
            caller.submit(name, task="give", argument=ARGUMENT, result=RESULT)
            call = zlib.compress(json.dumps(["give", None, [], data]).encode())
            client.hset(f"rq:job:{evidence.jobs[name]}", "data", call)
    half = new_job_id(0)
    client.hset(f"aj:job:{half}", mapping={"callback_url": QUERY, "metadata": METADATA})
    client.expire(f"aj:job:{half}", 60)
    assert caller.get(f"/jobs/{half}").status_code == 500


@contextmanager
def paused(client: redis.Redis) -> Iterator[None]:
    """While RQ's workers are suspended nothing is taken."""
    client.set("rq:suspended", 1)
    threading.Event().wait(1.5)  # a worker looks once a second
    try:
        yield
    finally:
        client.delete("rq:suspended")


def everything_in(client: Any) -> tuple[str, str]:
    """All names of keys, and all values as text, RQ's compressed payloads unpacked."""
    values: list[object] = []
    names = sorted(client.scan_iter(count=1000))
    read = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda name: client.lrange(name, 0, -1),
        b"set": client.smembers,
        b"zset": lambda name: client.zrange(name, 0, -1),
        b"stream": client.xrange,
    }
    for name in names:
        value = read[client.type(name)](name)
        values.append(value)
        if isinstance(value, dict) and value.get(b"data", b"").startswith(b"x\x9c"):
            values.append(zlib.decompress(value[b"data"]))
    return repr(names), repr(values)


def wrong_settings(env: dict[str, str], evidence: Evidence) -> None:
    """Each process started with each secret setting wrong: all that it prints."""
    commands = {
        "api": [sys.executable, "-m", "gunicorn", "wsgi:app", "-b", f"127.0.0.1:{free_port()}"],
        "worker": [sys.executable, "worker.py"],
        "hooksink": [sys.executable, "-m", "hooksink"],
    }
    changes = (
        {"AJ_WEBHOOK_SECRETS": SECRET + "/!"},
        {"AJ_WEBHOOK_SECRETS": SECRET.removeprefix("whsec_")},
        {"AJ_REDIS_URL": f"redis://:{PASSWORD}/slash@127.0.0.1:6379/0"},
        {"AJ_REDIS_URL": f"postgres://:{PASSWORD}@127.0.0.1:6379/0"},
    )
    for number, change in enumerate(changes):
        for name, command in commands.items():
            if name == "hooksink" and number == 2:
                continue  # which has no store, and asks no more of its address than its form
            ended = subprocess.run(
                command, env=clean_env({**env, **change}), capture_output=True, timeout=60, check=False
            )
            assert ended.returncode != 0
            evidence.logs[f"{name} with {next(iter(change))} wrong, {number}"] = (ended.stdout + ended.stderr).decode()


@contextmanager
def deployed(folder: Path, url: str, evidence: Evidence) -> Iterator[tuple[dict[str, str], Caller, str]]:
    """API, worker and receiver at their most talkative; what they print is kept."""
    env = {
        "AJ_REDIS_URL": url,
        "AJ_TASKS": "tests.support.tasks_with_marks",
        "AJ_WEBHOOK_SECRETS": SECRET,
        "AJ_CALLBACK_ALLOW": "127.0.0.0/8",
        "AJ_CALLBACK_SCHEDULE_S": "0,0",
        "AJ_CALLBACK_TIMEOUT_S": "2",
        "AJ_LOG": "json",  # which holds all that the text would, and more
    }
    port, sink_port = free_port(), free_port()
    talk = ("--access-logfile", "-", "--log-level", "debug")
    api_command = [sys.executable, "-m", "gunicorn", "wsgi:app", *talk]
    sink = {"AJ_WEBHOOK_SECRETS": SECRET, "AJ_HOOKSINK_PORT": str(sink_port), "HOOKSINK_LOG": str(folder / "hook.log")}
    with (
        running([sys.executable, "-m", "hooksink"], sink, folder) as receiver,
        running(api_command, {**env, "AJ_PORT": str(port)}, folder) as api,
        # What the API allows and the deliverer does not is refused when it is due.
        running_worker({**env, "AJ_CALLBACK_ALLOW": "127.0.0.1"}, folder) as worker,
    ):
        wait_until(lambda: accepts(port) and accepts(sink_port), what="an API and a receiver that listen")
        parts = {"api": api, "worker": worker, "hooksink": receiver}
        yield env, Caller(f"http://127.0.0.1:{port}", evidence), f"http://127.0.0.1:{sink_port}"
        evidence.commands = "\n".join(command_lines(list(parts.values())))
    evidence.logs |= {name: part.output for name, part in parts.items()}
    evidence.logs["receipts"] = (folder / "hook.log").read_text()


def command_lines(parts: list[Running]) -> list[str]:
    """What `ps` shows of the processes of a deployment and of their children (Linux)."""
    return [Path(f"/proc/{pid}/cmdline").read_text() for part in parts for pid in (part.pid, *part.children())]


def misdirected(receiver: Receiver) -> Iterator[tuple[int, dict[str, str]]]:
    """Answers of a receiver that fails: a redirect, and an error, with the callback's own URL in them."""
    yield 302, {"Location": receiver.url(f"/{PATH}?{QUERY}")}
    while True:
        yield 500, {"X-Echo": QUERY}


def run_with_marks(folder: Path) -> Evidence:
    """The whole run, in a folder of its own."""
    found = Evidence()
    with (
        start_server(folder / "store") as server,
        receiving() as failing,
        egress_receivers.receiving(egress_receivers.answering(BROKEN_HEADERS)) as broken,
    ):
        redis.Redis.from_url(server.url).config_set("requirepass", PASSWORD)
        url = server.url.replace("unix://", f"unix://:{PASSWORD}@")
        answers = misdirected(failing)
        failing.answer = lambda _: next(answers)
        with deployed(folder, url, found) as (env, caller, sink):
            others = {
                "failing receiver": failing.url(""),
                "broken receiver": broken.url.removesuffix("/hook"),
                "nobody": f"http://127.0.0.1:{free_port()}",
                "no TLS": failing.url("").replace("http:", "https:"),
                "refused when due": f"http://127.0.0.2:{free_port()}",
                "no such name": "http://no-such-name.invalid",
            }
            client = redis.Redis.from_url(url)
            submit_all(caller, sink, others)
            be_refused(caller)
            break_what_is_stored(client, caller, found)
            for job_id in found.jobs.values():
                wait_until(lambda: caller.has_ended(job_id), 60, "the end of every job and webhook")  # noqa: B023
                caller.get(f"/jobs/{job_id}")
            found.key_names, found.stored = everything_in(client)
            info = [sys.executable, "-m", "rq.cli", "info", "-u", url]
            found.rq_info = subprocess.run(info, env=clean_env({}), capture_output=True, text=True, check=True).stdout
            wrong_settings(env, found)
            client.config_set("requirepass", "another")
            client.client_kill_filter(_type="normal", skipme=True)
            wait_until(lambda: caller.get("/jobs/" + new_job_id(0)).status_code == 503, what="a store that says no")
            assert caller.post({"task": "give", "argument": ARGUMENT, "result": RESULT}).status_code == 503
            server.stop()
            assert caller.get("/readyz").status_code == 503
            assert caller.post({"task": "give", "argument": ARGUMENT, "result": RESULT}).status_code == 503
        found.webhooks = failing.received
    return found
