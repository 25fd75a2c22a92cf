"""Every key of ours, in one table. RQ's own keys are RQ's: they are asked of its classes, never spelled here.

| key | type | owner | life |
|---|---|---|---|
| `<prefix>:job:<id>` | hash | jobs | none while the job is active; the result TTL from its end |
| `<prefix>:tomb:<id>` | string, see `lists.lua` | jobs | written at the end of the job; result TTL + tombstone TTL |
| `<prefix>:idem:<digest>` | hash | jobs | the idempotency TTL from the submission |
| `<prefix>:rate` | string: when the quota is whole again, µs | jobs | until then |
| `<prefix>:rate:<owner>` | the same | jobs | the same |
| `<prefix>:active` | sorted set of job ids | jobs | its last member's |
| `<prefix>:active:<owner>` | sorted set of job ids | jobs | its last member's |
| `<prefix>:ended:<status>` | sorted set of job ids | jobs | its last member's; a sweep takes out what has expired |
| `<prefix>:ended:<status>:<owner>` | sorted set of job ids | jobs | the same |
| `<prefix>:expiring` | sorted set of minutes | jobs | its last member's |
| `<prefix>:expiring:<minute>` | list of ended jobs | jobs | until a sweep after that minute |
| `<prefix>:leases` | sorted set: job id → end of lease, ms | jobs | its last member's |
| `<prefix>:delayed` | sorted set: job id → due, ms | jobs | its last member's |
| `<prefix>:pace:task:<task>` | string: lengths of the last 64 runs | jobs | 30 days from the last run |
| `<prefix>:pace:queue:<queue>` | string: lengths of the last 64 runs | jobs | 30 days from the last run |
| `<prefix>:pace:line:<queue>` | hash | jobs | 30 days from the last job that came or started |
| `<prefix>:metrics` | hash: what → how often | figures | 30 days from the last submission |
| `<prefix>:tally:<hour>` | hash: `s` or `f` and the minute → jobs that ended so | figures | 2 hours |
| `<prefix>:session:<digest>` | string: name of the caller, digest of its key | dashboard | 12 hours from the sign-in |
| `<prefix>:probe` | any; a channel too | health | none: it is gone in the same step |
| `<prefix>:out:job:<id>` | hash | outbox | none while pending; as long as the job's hash once delivered or spent |
| `<prefix>:out:hosts` | sorted set: host → next work, ms | outbox | its last member's |
| `<prefix>:out:pending` | sorted set: job id → since when a delivery is owed, ms | outbox | its last member's |
| `<prefix>:out:due:<host>` | sorted set: job id → due, ms | outbox | its last member's |
| `<prefix>:out:busy:<host>` | sorted set: job id → end of lease, ms | outbox | its longest lease's |
| `<prefix>:out:answers:<host>` | string | outbox | ten minutes from the last answer; gone with an attempt without one |
| `<prefix>:out:news` | channel | outbox | |
| `<prefix>:changes` | channel | jobs | |

Without a time to live stand only active jobs, pending deliveries, and the sorted sets that index jobs and
deliveries; each of these is gone when its last job or delivery is. Job ids are ordered by time, so a set of ids
in which all scores are equal is ordered by time too, and pages of it are cut by id. A job that has an owner is in the
lists of its owner, and in `active`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

# A field of ours in RQ's hash of a worker: whose it is. `workers.lua` reads it too. The other one, `aj_repeated`, is
# between a worker and `desk.lua`.
WORKER_FIELD = "aj_prefix"


@dataclass(frozen=True, slots=True)
class Keys:
    """Names keys under one prefix."""

    prefix: str

    def job(self, job_id: str) -> str:
        return f"{self.prefix}:job:{job_id}"

    def tombstone(self, job_id: str) -> str:
        return f"{self.prefix}:tomb:{job_id}"

    def rq_name(self, task: str) -> str:
        """What RQ calls the function of a job. Nothing can be imported by it, and it says whose job it is."""
        return f"{self.prefix}:{task}"

    def owns(self, rq_name: str) -> bool:
        """Whether a job of that name is of this deployment: two may share one store and one queue."""
        return rq_name.rpartition(":")[0] == self.prefix

    def idempotency(self, owner: str, key: str) -> str:
        """The client's key is hashed, so that its text never becomes part of one of ours."""
        digest = hashlib.sha256(f"{len(owner)}:{owner}:{key}".encode()).hexdigest()
        return f"{self.prefix}:idem:{digest}"

    def _of(self, owner: str, name: str) -> str:
        """What is kept for one caller; for all where `owner` is empty, since callers are not told apart then."""
        return f"{self.prefix}:{name}:{owner}" if owner else f"{self.prefix}:{name}"

    def rate(self, owner: str) -> str:
        """The quota of one caller."""
        return self._of(owner, "rate")

    @property
    def active(self) -> str:
        return f"{self.prefix}:active"

    def active_of(self, owner: str) -> str:
        """The active jobs of one caller."""
        return self._of(owner, "active")

    def ended(self, status: str, owner: str = "") -> str:
        return self._of(owner, f"ended:{status}")

    @property
    def expiring(self) -> str:
        return f"{self.prefix}:expiring"

    @property
    def probe(self) -> str:
        return f"{self.prefix}:probe"

    @property
    def metrics(self) -> str:
        return f"{self.prefix}:metrics"

    def session(self, token: str) -> str:
        """A browser that has signed in. Its token is hashed, so that whoever reads the store cannot take its place."""
        return f"{self.prefix}:session:{hashlib.sha256(token.encode()).hexdigest()}"

    @property
    def changes(self) -> str:
        return f"{self.prefix}:changes"

    @property
    def leases(self) -> str:
        return f"{self.prefix}:leases"

    @property
    def delayed(self) -> str:
        return f"{self.prefix}:delayed"

    @property
    def outbox(self) -> str:
        """What all keys of the outbox begin with."""
        return f"{self.prefix}:out"

    def delivery(self, job_id: str) -> str:
        return f"{self.prefix}:out:job:{job_id}"

    @property
    def pending(self) -> str:
        return f"{self.prefix}:out:pending"

    @property
    def hosts(self) -> str:
        return f"{self.prefix}:out:hosts"

    def due(self, host: str) -> str:
        return f"{self.prefix}:out:due:{host}"

    def busy(self, host: str) -> str:
        return f"{self.prefix}:out:busy:{host}"

    def answers(self, host: str) -> str:
        return f"{self.prefix}:out:answers:{host}"

    @property
    def news(self) -> str:
        return f"{self.prefix}:out:news"
