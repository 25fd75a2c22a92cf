"""`python -m tests.chaos.clients PLAN`: clients that do as a careful caller does, and note what they are told.

Each submits with a key of its own, sends the same request until it has its 202, looks at once for the job that it
was promised, and follows it to its end. SIGTERM lets each bring its last submission home and stop.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import requests

from tests.chaos.notes import Notes, Plan

FINAL = ("succeeded", "failed")
LIMITS_S = (2.0, 6.0)
PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Open:
    """A job that was promised and has not been seen at its end."""

    ordinal: int
    job_id: str


class Client:
    """One caller. Job number n of client number c is number n * clients + c of the run, its ordinal."""

    def __init__(self, number: int, plan: Plan, stop: threading.Event) -> None:
        self._plan, self._stop = plan, stop
        self._next, self._chance = number, random.Random(f"{plan.seed} {number}")
        self._open: deque[Open] = deque()
        self._session = requests.Session()
        self._session.trust_env = False

    def run(self, notes: Notes) -> None:
        self._notes = notes
        while not self._stop.is_set():
            if len(self._open) < self._plan.open_jobs:
                self._submit(self._next)
                self._next += self._plan.clients
            else:
                self._look()

    def _submit(self, ordinal: int) -> None:
        members = self._members(ordinal)
        job_id = self._insist(ordinal, members, asks=1)
        self._see(Open(ordinal, job_id), must_be_there=True)
        self._open.append(Open(ordinal, job_id))
        if self._chance.random() < 0.1:
            self._insist(ordinal, members, asks=2)

    def _members(self, ordinal: int) -> dict[str, Any]:
        """A job of the mix; most have a callback."""
        task = self._chance.choices(("quick", "slow", "failing", "flaky", "steady"), (40, 20, 10, 15, 15))[0]
        members: dict[str, Any] = {"task": task, "ordinal": ordinal}
        if task in ("slow", "steady"):
            members["seconds"] = round(self._chance.uniform(0.1, 0.5), 3)
        if self._chance.random() < 0.8:
            members["callback_url"] = self._chance.choice(self._plan.hooks)
        return members

    def _insist(self, ordinal: int, members: dict[str, Any], asks: int) -> str:
        """Sends the submission until it is answered 202, and gives the id."""
        headers = {"Idempotency-Key": f"{self._plan.seed}-{ordinal}"}
        while True:
            answer = self._ask("POST", "/jobs", json=members, headers=headers)
            if answer is None:
                continue
            if answer.status_code == 202:
                job_id = str(answer.json()["job_id"])
                self._notes.write(
                    "accepted",
                    ordinal=ordinal,
                    job_id=job_id,
                    task=members["task"],
                    callback=members.get("callback_url"),
                    replayed="Idempotent-Replayed" in answer.headers,
                    asks=asks,
                )
                return job_id
            self._wrong(answer, f"submission {ordinal}")

    def _look(self) -> None:
        """At the job that has not been looked at for longest."""
        job = self._open.popleft()
        if not self._see(job):
            self._open.append(job)
            self._stop.wait(PAUSE_S / 2)

    def _see(self, job: Open, must_be_there: bool = False) -> bool:
        """Whether the job has ended. With `must_be_there` the question is asked until the API has an answer."""
        while True:
            answer = self._ask("GET", f"/jobs/{job.job_id}")
            if answer is not None:
                break
            if not must_be_there:
                return False
        if answer.status_code != 200:
            self._wrong(answer, f"job {job.job_id}")
            return True
        document = answer.json()
        if document["status"] in FINAL:
            self._notes.write("ended", job_id=job.job_id, document=document)
            return True
        return False

    def _ask(self, method: str, path: str, **more: Any) -> requests.Response | None:
        """The answer of one of the APIs, or None, after a pause, where it cannot be had at the moment."""
        try:
            answer = self._session.request(
                method, self._chance.choice(self._plan.apis) + path, timeout=LIMITS_S, **more
            )
        except requests.RequestException:
            threading.Event().wait(PAUSE_S)
            return None
        if answer.status_code != 503:
            return answer
        if (
            not answer.headers.get("Retry-After", "").isdecimal()
            or "problem+json" not in answer.headers["Content-Type"]
        ):
            self._wrong(answer, path)
        threading.Event().wait(PAUSE_S)
        return None

    def _wrong(self, answer: requests.Response, about: str) -> None:
        self._notes.write("wrong", about=about, status=answer.status_code, body=answer.text[:500])
        threading.Event().wait(PAUSE_S)


def main(text: str) -> None:
    plan, stop = Plan(**json.loads(text)), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    notes = Notes(plan.notes)
    with ThreadPoolExecutor(plan.clients) as threads:
        ends = [threads.submit(Client(number, plan, stop).run, notes) for number in range(plan.clients)]
    for end in ends:
        end.result()


if __name__ == "__main__":
    main(*sys.argv[1:])
