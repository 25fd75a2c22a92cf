"""When a subscription counts as dead, and that those who wait always hear of its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from aj.store import Changes
from aj.store import changes as module
from aj.store.breaker import Breaker

SILENCE = None
BEGUN = {"type": "subscribe", "data": 1}
ALIVE = {"type": "pong", "data": b""}
NEWS = {"type": "message", "data": b"j"}
LATER_S = 10.0


class Store:
    """A store whose subscriptions follow a script: each is a list of what comes, an error to be raised included.

    The last one stays silent for ever.
    """

    connection = object()

    def __init__(self, *subscriptions: list[Any]) -> None:
        self.breaker = Breaker()
        self.begun = self.questions = 0
        self.is_over = threading.Event()
        self.replaced_after: int | None = None
        self._to_come = iter(subscriptions)

    def pubsub(self) -> Store:
        self._now: Iterator[Any] = iter(next(self._to_come))
        self.begun += 1
        return self

    def subscribe(self, _channel: str) -> None: ...

    def close(self) -> None: ...

    def ping(self) -> None:
        self.questions += 1

    def is_replaced(self, connection: object) -> bool:
        assert connection is self.connection
        return self.questions == self.replaced_after and self.begun == 1

    def get_message(self, timeout: float) -> Any:
        assert timeout > 0
        comes = next(self._now, threading.Event)
        if comes is threading.Event:
            self.is_over.set()
            threading.Event().wait()
        if isinstance(comes, Exception):
            raise comes
        return comes


def play(store: Store, *, only_end: bool = False) -> threading.Event:
    """Waits for the job `j` until the store's script is over; gives the waiter's event."""
    with Changes(store, "c").watching("j", only_end=only_end) as changed:  # type: ignore[arg-type]
        assert store.is_over.wait(LATER_S)
    return changed


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRY_AGAIN_S", 0.0)


def test_silence_is_answered_with_a_question() -> None:
    """An answer, or any other word, shows that the subscription lives: it goes on."""
    store = Store([SILENCE, SILENCE, ALIVE, SILENCE, SILENCE, NEWS, SILENCE, SILENCE])
    assert play(store).is_set()
    assert (store.begun, store.questions) == (1, 6)


def test_silence_after_two_questions_is_the_end_of_a_subscription() -> None:
    """Another one begins at once, and wakes who waits."""
    store = Store([SILENCE, SILENCE, SILENCE, "never heard"], [BEGUN])
    assert play(store).is_set()
    assert store.begun == 2


def test_nobody_is_woken_by_a_sign_of_life_or_by_news_of_others() -> None:
    """So they ask the store nothing."""
    assert not play(Store([ALIVE, {"type": "message", "data": b"another"}, SILENCE])).is_set()


@pytest.mark.parametrize(("news", "wakes"), [(b"j", False), (b"j ended", True), (b"another ended", False)])
def test_who_waits_for_the_end_is_woken_by_nothing_less(news: bytes, wakes: bool) -> None:
    """Most do, and a job tells of its start and of all its progress."""
    told = {"type": "message", "data": news}
    assert play(Store([told, SILENCE]), only_end=True).is_set() == wakes
    assert play(Store([told, SILENCE])).is_set() == (news != b"another ended")


def test_a_store_that_was_replaced_is_left() -> None:
    """It lives and answers, and has nothing to tell any more."""
    store = Store([SILENCE, SILENCE, "never heard"], [BEGUN])
    store.replaced_after = 1
    assert play(store).is_set()
    assert store.begun == 2


@pytest.mark.parametrize("error", [redis.ConnectionError(), redis.TimeoutError(), ValueError("a bug")])
def test_whatever_ends_a_subscription_wakes_who_waits(error: Exception) -> None:
    """They look for themselves, and the next subscription is tried."""
    store = Store([error], [SILENCE])
    assert play(store).is_set()
    assert store.begun == 2


def test_where_the_store_hung_who_is_woken_need_not_find_out(caplog: pytest.LogCaptureFixture) -> None:
    """A hundred who look at once would each sit out the time limit."""
    store = Store([BEGUN, redis.TimeoutError()], [SILENCE])
    play(store)
    assert not store.breaker.lets_through()
    assert [each.getMessage() for each in caplog.records] == [
        "waiting requests look for themselves until the store is back: TimeoutError"
    ]
