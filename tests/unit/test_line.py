"""The line between a worker and its work-horse: whole messages in their order, and never a wait that has no end."""

from __future__ import annotations

import threading
import time

import pytest

from aj.worker.line import Line


def test_messages_come_whole_and_in_their_order() -> None:
    """Also where several were said before anybody listened."""
    ours, theirs = Line.pair()
    theirs.say(b"b")
    theirs.say(b"e", b"25")
    ours.say(b"o", "grün ✓".encode())
    assert ours.hear(5) == [(b"b", b""), (b"e", b"25")]
    assert theirs.hear() == [(b"o", "grün ✓".encode())]


def test_a_message_may_be_larger_than_what_the_system_holds() -> None:
    """Either way: the worker's end goes on sending while it listens."""
    ours, theirs = Line.pair()
    large = bytes(range(256)) * 40_000
    answered = threading.Thread(target=lambda: theirs.say(b"e", theirs.hear()[0][1]))
    answered.start()
    ours.say(b"o", large)
    assert ours.hear(30) == [(b"e", large)]
    answered.join()


def test_who_listens_for_a_while_comes_back_in_time() -> None:
    """Whatever is said by then, and where half a message has come too."""
    ours, theirs = Line.pair()
    assert ours.hear(0) == []
    theirs._end.send(b"e\0\0\0\0\0\0\0\x05tw")
    started_s = time.monotonic()
    assert ours.hear(0.1) == []
    assert time.monotonic() - started_s < 5
    theirs._end.send(b"ent")
    assert ours.hear(5) == [(b"e", b"twent")]


def test_what_was_said_before_the_end_is_heard() -> None:
    """Then the line is closed, and says so at once for ever."""
    ours, theirs = Line.pair()
    theirs.say(b"e", bytes(100_000))
    theirs.close()
    assert ours.hear(5) == [(b"e", bytes(100_000))]
    assert ours.hear(5) == []
    assert not ours.is_open
    assert ours.hear(5) == []


def test_nobody_to_hear_is_no_error() -> None:
    """The death of the other end is found by listening."""
    ours, theirs = Line.pair()
    theirs.close()
    ours.say(b"o", bytes(10_000_000))
    assert ours.hear(5) == []
    assert not ours.is_open


@pytest.mark.parametrize("leaves", [True, False], ids=["one that leaves", "one that does not"])
def test_hanging_up_waits_for_the_other_end_for_a_while(leaves: bool) -> None:
    """It hears that there will be no more orders."""
    ours, theirs = Line.pair()

    def listen() -> None:
        assert theirs.hear() == []
        if leaves:
            theirs.close()

    listening = threading.Thread(target=listen)
    listening.start()
    started_s = time.monotonic()
    ours.hang_up(5 if leaves else 0.2)
    assert time.monotonic() - started_s < 4
    listening.join()
    assert not ours.is_open
