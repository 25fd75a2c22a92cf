"""The one room that knows Redis and RQ's keys. Above it nobody sees either."""

from aj.store.board import Board, Counts, Details, Minute, Overview, Owed, QueueSeen, Running, WorkerSeen
from aj.store.books import Books
from aj.store.changes import Changes
from aj.store.client import Client, connect, patiently
from aj.store.control import OF_CALLBACK, SHOWN, Control, Page, Wanted
from aj.store.desk import NO_BOOKS, Claim, Desk, Success, Taken, Wish
from aj.store.figures import BOUNDS_S, Figures, Reading
from aj.store.found import Found
from aj.store.health import refuse_unfit, unready_because
from aj.store.jobs import Answer, End, Fenced, Jobs, Key, Place, Pulse, Verdict, Webhook
from aj.store.keys import Keys
from aj.store.outbox import Attempt, Delivery, News, Outbox
from aj.store.recovery import Recovery
from aj.store.sessions import Sessions

__all__ = [
    "BOUNDS_S",
    "NO_BOOKS",
    "OF_CALLBACK",
    "SHOWN",
    "Answer",
    "Attempt",
    "Board",
    "Books",
    "Changes",
    "Claim",
    "Client",
    "Control",
    "Counts",
    "Delivery",
    "Desk",
    "Details",
    "End",
    "Fenced",
    "Figures",
    "Found",
    "Jobs",
    "Key",
    "Keys",
    "Minute",
    "News",
    "Outbox",
    "Overview",
    "Owed",
    "Page",
    "Place",
    "Pulse",
    "QueueSeen",
    "Reading",
    "Recovery",
    "Running",
    "Sessions",
    "Success",
    "Taken",
    "Verdict",
    "Wanted",
    "Webhook",
    "Wish",
    "WorkerSeen",
    "connect",
    "patiently",
    "refuse_unfit",
    "unready_because",
]
