"""The one room that knows Redis and RQ's keys. Above it nobody sees either."""

from aj.store.changes import Changes
from aj.store.client import Client, connect, patiently
from aj.store.control import Control, Page, Wanted
from aj.store.figures import BOUNDS_S, Figures, Reading
from aj.store.found import Found
from aj.store.health import refuse_unfit, unready_because
from aj.store.jobs import Answer, Claim, Fenced, Jobs, Key, Place, Pulse, Verdict, Webhook
from aj.store.keys import Keys
from aj.store.outbox import Attempt, Delivery, News, Outbox
from aj.store.recovery import Recovery

__all__ = [
    "BOUNDS_S",
    "Answer",
    "Attempt",
    "Changes",
    "Claim",
    "Client",
    "Control",
    "Delivery",
    "Fenced",
    "Figures",
    "Found",
    "Jobs",
    "Key",
    "Keys",
    "News",
    "Outbox",
    "Page",
    "Place",
    "Pulse",
    "Reading",
    "Recovery",
    "Verdict",
    "Wanted",
    "Webhook",
    "connect",
    "patiently",
    "refuse_unfit",
    "unready_because",
]
