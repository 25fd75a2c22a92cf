"""The jobs whose webhooks are watched: submitted together, so that their attempts come side by side.

The first attempt of one is answered 500, of one with a redirect; the third job fails.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from aj.check.exchange import Exchange
from aj.check.options import Call
from aj.check.receiver import Delivery, Receiver
from aj.check.scene import Scene
from aj.check.story import Job
from aj.check.verdicts import Broken, Skip
from aj.clock import monotonic_s
from aj.errors import CheckUnplayable

REFUSED_ONCE, REDIRECTED_ONCE, FAILING, ELSEWHERE = "/refused-once", "/redirected-once", "/failing", "/elsewhere"
ANSWERS = {REFUSED_ONCE: [500], REDIRECTED_ONCE: [307]}
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@dataclass(frozen=True, slots=True)
class Hooks:
    """The receiver, and the jobs by the paths to which their webhooks go. All have the same time to come."""

    receiver: Receiver
    jobs: dict[str, Job]
    within_s: float
    until_s: float  # on the monotonic clock

    def wait(self, path: str, count: int) -> list[Delivery]:
        """What came on this path: `count` attempts or more, unless they did not come in time."""
        return self.receiver.wait_for(path, count, max(0.0, self.until_s - monotonic_s()))

    def first(self, path: str) -> Delivery:
        """The first attempt that came on this path. Raises: Broken: none did; Skip: there is no such job."""
        if path not in self.jobs:
            raise Skip("it takes a job that fails; --failing-body says how to submit one")
        came = self.wait(path, 1)
        if not came:
            raise Broken(f"no webhook came within {self.within_s:g} s", self.jobs[path].submission)
        return came[0]

    def firsts(self) -> dict[str, Delivery]:
        """The first attempts by their paths, where there are any. Raises: Skip: there is none."""
        came = {path: self.wait(path, 1) for path in self.jobs}
        if not any(came.values()):
            raise Skip("no webhook came; see webhook-arrives")
        return {path: each[0] for path, each in came.items() if each}

    def taken(self, path: str, count: int) -> list[Delivery]:
        """At least so many attempts. Raises: Skip: they did not come."""
        came = self.wait(path, count)
        if len(came) < count:
            raise Skip("not so many attempts came; see webhook-arrives and webhook-again")
        return came


def hooks(scene: Scene) -> Hooks:
    """The watched jobs, submitted at the first call. Raises: Skip: there can be none."""
    return scene.once("hooks", partial(_begin, scene))


def _begin(scene: Scene) -> Hooks:
    options, calls = scene.options, {REFUSED_ONCE: scene.options.call, REDIRECTED_ONCE: scene.options.call}
    if options.callback is None:
        raise Skip("the API has to reach this machine; --callback-host says by which name")
    if options.failing is not None:
        calls[FAILING] = options.failing
    scene.submit()
    host, port = options.callback
    try:
        receiver = Receiver(host, port, ANSWERS, partial(_look, scene), options.api_key)
    except (OSError, OverflowError) as error:
        raise Skip(f"nothing can listen at {host}:{port} ({error}); --callback-host says another") from None
    scene.at_the_end(receiver.close)
    return Hooks(
        receiver,
        {path: _submit(scene, receiver.base_url + path, call) for path, call in calls.items()},
        options.job_timeout_s,
        monotonic_s() + options.job_timeout_s,
    )


def _submit(scene: Scene, address: str, call: Call) -> Job:
    if not isinstance(call.body, dict):
        raise Skip("the body is not an object, which could have the address in it")
    body = json.dumps({**call.body, scene.profile.callback: address}).encode()
    exchange = scene.send(body, (("traceparent", TRACE),), path=call.path)
    if not scene.is_accepted(exchange):
        raise Skip(f"the API does not call {address}: {exchange.told()}; allow it, or say another --callback-host")
    return scene.job_of(exchange)


def _look(scene: Scene, body: bytes) -> Exchange | None:
    """What a receiver sees that fetches the job at once; None where the body names none."""
    job_id = scene.id_in(body)
    if not job_id:
        return None
    try:
        return scene.play("GET", scene.path(scene.profile.job.path, job_id))
    except (Broken, CheckUnplayable):
        return None
