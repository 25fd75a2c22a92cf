"""The message that tells of the end of a job. Made once, with the outcome; who delivers it sends it as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aj import clock
from aj.egress import host_of
from aj.errors import AddressRefused
from aj.job import Job, Status, join_members, quoted
from aj.schedule import delay_before_s
from aj.store import Webhook

RESULT_MAX_BYTES = 16 * 1024


def webhook_for(job: Job, host: str, first_delay_s: float) -> Webhook:
    """The message that tells of the end of `job`: its document with `type` and `timestamp` before the rest.

    A result of more than 16 KiB is left out and said to be.
    """
    assert job.ended_ms is not None
    members = [("type", quoted(f"job.{job.status}")), ("timestamp", quoted(clock.rfc3339(job.ended_ms)))]
    large = job.status is Status.SUCCEEDED and job.outcome is not None and len(job.outcome) > RESULT_MAX_BYTES
    members += [each for each in job.members() if not (large and each[0] == "result")]
    members += [("result_omitted", b"true")] if large else []
    return Webhook(join_members(members), host, job.ended_ms + int(first_delay_s * 1000))


def webhook_of_end(ended: Job, schedule_s: Sequence[float], host_of: Callable[[str], str] = host_of) -> Webhook | None:
    """The webhook that is owed at the end of a job, or None where nobody asked for one.

    A URL that an older version accepted and this one cannot read must not keep a job from ending.
    """
    if ended.callback_url is None:
        return None
    try:
        host = host_of(ended.callback_url)
    except AddressRefused:
        host = "unreadable"
    return webhook_for(ended, host, delay_before_s(1, schedule_s) or 0.0)


def webhook_id(job_id: str) -> str:
    """One id per job, since a job ends once; the same on every attempt, so that a receiver can drop repeats."""
    return "msg_" + job_id.replace("-", "")
