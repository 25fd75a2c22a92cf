"""The work-horses of one worker: the one at work, and around its last run the next one and the last one.

To start and to end a process takes longer than most jobs. So the next one is started while the one at work is on its
last run, and is ready when that ends; and one that has had its last run goes while its successor works.
"""

from __future__ import annotations

from aj.worker.horse import Life, WorkHorse
from aj.worker.message import Order


class Stable:
    """Work-horses that run so many jobs each and live as `live` says. No more than one of them runs a job at a time."""

    def __init__(self, live: Life, jobs_per_horse: int) -> None:
        self._live, self._jobs_per_horse = live, jobs_per_horse
        self.at_work: WorkHorse | None = None
        self._next: WorkHorse | None = None

    def order(self, order: Order) -> WorkHorse:
        """Gives an order to a work-horse that can be used, and gives that."""
        last, horse = self.at_work, self.at_work
        if horse is None or not horse.is_fit(self._jobs_per_horse):
            horse = self._fresh()
            if last is not None:
                last.let_go()
        self.at_work = horse
        horse.order(order)
        if last is not None and last is not horse:
            last.dismiss()
        if horse.runs >= self._jobs_per_horse:
            self._next = WorkHorse(self._live, beside=horse)
        return horse

    def dismiss(self) -> None:
        """No work-horse stays behind."""
        all_of_them, self.at_work, self._next = (self.at_work, self._next), None, None
        for horse in all_of_them:
            if horse is not None:
                horse.dismiss()

    def _fresh(self) -> WorkHorse:
        """The next one, or one made now where there is none or it has died."""
        horse, self._next = self._next, None
        if horse is not None and horse.lives:
            return horse
        if horse is not None:
            horse.dismiss()
        return WorkHorse(self._live, beside=self.at_work)
