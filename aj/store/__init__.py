"""The one room that knows Redis and RQ's keys. Above it nobody sees either."""

from aj.store.books import Books
from aj.store.changes import Changes
from aj.store.client import Client, connect, patiently
from aj.store.control import Control, Page, Wanted
from aj.store.desk import NO_BOOKS, Claim, Desk, Success, Taken, Wish
from aj.store.figures import BOUNDS_S, Figures, Reading
from aj.store.found import Found
from aj.store.health import refuse_unfit, unready_because
from aj.store.jobs import Answer, End, Fenced, Jobs, Key, Place, Pulse, Verdict, Webhook
from aj.store.keys import Keys
from aj.store.outbox import Attempt, Delivery, News, Outbox
from aj.store.recovery import Recovery

__all__ = [
    "BOUNDS_S",
    "NO_BOOKS",
    "Answer",
    "Attempt",
    "Books",
    "Changes",
    "Claim",
    "Client",
    "Control",
    "Delivery",
    "Desk",
    "End",
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
    "Success",
    "Taken",
    "Verdict",
    "Wanted",
    "Webhook",
    "Wish",
    "connect",
    "patiently",
    "refuse_unfit",
    "unready_because",
]
