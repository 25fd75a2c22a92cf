"""Submit: the members of a request body become one accepted job, or one problem.

Validates first and asks the store once. Runs nothing, and knows no HTTP.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aj import clock
from aj.errors import AddressRefused, FieldError, Invalid, KeyReused, QueueFull, RateExceeded
from aj.job import Submission, new_job_id
from aj.logs import of_job
from aj.pace import NOTHING_KNOWN, Outlook
from aj.rate import Quota
from aj.registry import RESERVED, Registry, Task
from aj.settings import Settings
from aj.store import Jobs, Key, Place, Verdict

log = logging.getLogger("aj.submit")

METADATA_MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Accepted:
    """A submission that stands, now or since an earlier request with the same key.

    `result_ttl_s` is how long the result can be read once the job has ended, `quota` what its caller
    has left where there is a limit.
    """

    job_id: str
    replayed: bool
    outlook: Outlook = NOTHING_KNOWN
    result_ttl_s: int | None = None
    quota: Quota | None = None


@dataclass(frozen=True, slots=True)
class Submit:
    """Accepts submissions. `check_url` judges a callback URL and raises `AddressRefused`."""

    settings: Settings
    registry: Registry
    jobs: Jobs
    check_url: Callable[[str], str]

    def __call__(
        self, members: Mapping[str, Any], idempotency_key: str | None, owner: str = "", traceparent: str | None = None
    ) -> Accepted:
        """Accepts the job that `members` describe.

        Raises: Invalid, KeyReused, RateExceeded, QueueFull, StoreUnavailable.
        """
        submission, task = self._validated(members, owner, traceparent)
        place = Place(
            queue=task.queue or self.settings.queues[0],
            timeout_s=task.timeout_s or self.settings.job_timeout_s,
            result_ttl_s=self.settings.lives_s(task.result_ttl_s)[0],
            max_queued=self.settings.max_queued,
            result_ttl_is_own=task.result_ttl_s is not None,
            rate=self.settings.rate,
        )
        # A key that died before its job's result would start a second job while the first can still be read.
        key_ttl_s = max(self.settings.idempotency_ttl_s, place.result_ttl_s)
        key = None if idempotency_key is None else Key(idempotency_key, key_ttl_s)
        answer = self.jobs.submit(new_job_id(clock.now_ms()), submission, place, key)
        fields = answer.quota.fields() if answer.quota else {}
        if answer.verdict is Verdict.FULL:
            raise QueueFull(f"{place.max_queued} jobs are waiting already; try again when some have run.", fields)
        if answer.verdict is Verdict.MISMATCH:
            raise KeyReused("A key stands for one payload: send the first payload again, or take a new key.", fields)
        if answer.verdict is Verdict.LIMITED and answer.quota is not None:
            rate, next_in_s = answer.quota.rate, answer.quota.reset_s
            limit = f"{rate.count} jobs may be submitted in {rate.window_s} s"
            raise RateExceeded(f"{limit}; the next one in {next_in_s} s.", next_in_s, fields)
        accepted = Accepted(
            answer.job_id, answer.verdict is Verdict.REPLAYED, answer.outlook, place.result_ttl_s, answer.quota
        )
        _log(submission, accepted)
        return accepted

    def _validated(
        self, members: Mapping[str, Any], owner: str, traceparent: str | None = None
    ) -> tuple[Submission, Task]:
        ours = {name: members.get(name) for name in RESERVED}
        task = self._task(ours["task"])
        errors = [*_metadata_errors(ours["metadata"]), *self._callback_errors(ours["callback_url"])]
        params: dict[str, Any] = {}
        try:
            params = task.validate({name: value for name, value in members.items() if name not in RESERVED})
        except Invalid as refused:
            errors += refused.errors
            if not refused.errors:
                raise
        if errors:
            raise Invalid(f"The submission does not fit the task {task.name!r}.", tuple(errors))
        return Submission(task.name, params, ours["callback_url"], ours["metadata"], owner, traceparent), task

    def _task(self, name: Any) -> Task:
        if name is None:
            return self.registry.default
        task = self.registry.get(name) if isinstance(name, str) else None
        if task is None:
            known = ", ".join(each.name for each in self.registry)
            raise Invalid("There is no such task.", (FieldError("#/task", f"must be one of: {known}"),))
        return task

    def _callback_errors(self, url: Any) -> list[FieldError]:
        if url is None:
            return []
        if not isinstance(url, str):
            return [FieldError("#/callback_url", "must be a string")]
        try:
            self.check_url(url)
        except AddressRefused as refused:
            return [FieldError("#/callback_url", str(refused))]
        return []


def _log(submission: Submission, accepted: Accepted) -> None:
    """One line for who listens. `extra` has the fields for any formatter: in a host's app logging is the host's."""
    if log.isEnabledFor(logging.INFO):
        fields = of_job(accepted.job_id, submission.task, traceparent=submission.traceparent)
        fields |= {"owner": submission.owner} if submission.owner else {}
        said = "replayed" if accepted.replayed else "accepted"
        log.info("job %s: %s", accepted.job_id, said, extra={**fields, "replayed": accepted.replayed})


def _metadata_errors(metadata: Any) -> list[FieldError]:
    if metadata is None:
        return []
    if not isinstance(metadata, dict):
        return [FieldError("#/metadata", "must be an object")]
    # Counted without the white space that JSON does not need, which the caller may have left out too.
    size_bytes = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))
    if size_bytes > METADATA_MAX_BYTES:
        return [FieldError("#/metadata", f"is {size_bytes} bytes of JSON; the limit is {METADATA_MAX_BYTES}")]
    return []
