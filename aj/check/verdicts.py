"""How a point says that it does not hold, or could not be played. Knows no point."""

from __future__ import annotations

from aj.check.exchange import Exchange
from aj.errors import AjError

# What an API may answer to any submission: too many of them, and no room or no store.
BUSY = (429, 503)


class Broken(AjError):
    """The point does not hold; the exchanges show it."""

    def __init__(self, why: str, *exchanges: Exchange) -> None:
        super().__init__(why)
        self.exchanges = exchanges


class Skip(AjError):
    """The point could not be played here; the text says what would be needed."""


def expect(claim: object, why: str, *exchanges: Exchange) -> None:
    """Raises: Broken: `claim` is not true."""
    if not claim:
        raise Broken(why, *exchanges)


def expect_status(exchange: Exchange, *wanted: int, when: str = "", may_be_busy: bool = True) -> None:
    """Raises: Broken: the answer has none of these statuses. Skip: it says that there is no room now, which it may."""
    if may_be_busy and exchange.status in BUSY and exchange.status not in wanted:
        raise Skip(f"the API had no room: {exchange.told()}")
    words = " or ".join(map(str, wanted))
    expect(exchange.status in wanted, f"{when}{': ' if when else ''}{exchange.told()} instead of {words}", exchange)


def expect_size_taken(exchange: Exchange) -> None:
    """Raises: Skip: what was sent is larger than what this API takes, which it may say before it looks at it."""
    if exchange.status == 413:
        raise Skip(f"the API takes no body of {len(exchange.request.body or b'')} bytes")
