"""The Python client: submit a job, wait for it, verify its webhook.

It speaks the contract and knows no server: of this project it imports words only, of libraries only `requests`.
Source: docs/contract.md; docs/client.md says how it is used.
"""

from aj.client.api import Client
from aj.client.errors import ApiError, ClientError, JobGone, JobUnknown, NotUnderstood, Unreachable
from aj.client.job import Job, JobFailed, JobTimeout
from aj.client.webhook import verify
from aj.errors import SignatureError

__all__ = [
    "ApiError",
    "Client",
    "ClientError",
    "Job",
    "JobFailed",
    "JobGone",
    "JobTimeout",
    "JobUnknown",
    "NotUnderstood",
    "SignatureError",
    "Unreachable",
    "verify",
]
