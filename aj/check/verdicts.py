"""How a point says that it does not hold, or could not be played. Knows no point."""

from __future__ import annotations

from aj.check.exchange import Exchange
from aj.errors import AjError


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


def expect_status(exchange: Exchange, *wanted: int, when: str = "") -> None:
    """Raises: Broken: the answer has none of these statuses."""
    words = " or ".join(map(str, wanted))
    expect(exchange.status in wanted, f"{when}{': ' if when else ''}{exchange.told()} instead of {words}", exchange)
