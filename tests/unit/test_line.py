"""The line between a worker and its work-horse: whole messages in their order, and never a wait that has no end."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType

import pytest

from aj.worker.line import Line, Message


@contextmanager
def listening_to(line: Line) -> Iterator[list[Message]]:
    """What is heard from the other end meanwhile, until it is closed."""
    heard: list[Message] = []

    def listen() -> None:
        with closing(line):  # also where it breaks: nobody speaks for ever to one that does not listen
            while line.is_open:
                heard.extend(line.hear(30))

    listener = threading.Thread(target=listen)
    listener.start()
    yield heard
    listener.join()


@contextmanager
def interrupted_by(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Signals strike all the time, until the block ends."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0002)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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


def test_threads_that_speak_at_once_tear_no_message() -> None:
    """Each arrives whole, and as often as it was said."""
    ours, theirs = Line.pair()
    bodies = [bytes([65 + number]) * (1000 + 30_000 * number) for number in range(6)]

    def speak(body: bytes) -> None:
        for _ in range(50):
            theirs.say(b"p", body)

    threads = [threading.Thread(target=speak, args=(body,)) for body in bodies]
    with listening_to(ours) as heard:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        theirs.close()
    assert sorted(body for _, body in heard) == [body for body in bodies for _ in range(50)]


def test_an_exception_that_strikes_a_speaker_tears_no_message() -> None:
    """What was begun goes with the next message, and nothing waits for one that is gone."""

    class Struck(Exception):
        pass

    strikes_at, strikes = 0, 0

    def strike(signum: int, frame: FrameType | None) -> None:
        nonlocal strikes_at, strikes
        strikes_at -= 1
        if strikes_at == 0:
            strikes += 1
            raise Struck

    ours, theirs = Line.pair()
    body = bytes(range(256)) * 4096
    with listening_to(ours) as heard, closing(theirs):
        with interrupted_by(strike):
            for turn in range(80):
                with suppress(Struck):
                    strikes_at = 1 + turn % 4  # soon, or in the midst of it
                    theirs.say(b"p", body)
                    strikes_at = 0
        theirs.say(b"e", b"the last")
    assert strikes > 0
    assert heard.pop() == (b"e", b"the last")
    assert set(heard) == {(b"p", body)}


def test_a_signals_handler_may_speak_while_its_thread_does() -> None:
    """It neither waits for the one that it has interrupted, nor talks across it."""
    ours, theirs = Line.pair()

    def speak(signum: int, frame: FrameType | None) -> None:
        theirs.say(b"p", b"by the way")

    body = bytes(range(256)) * 4096
    with listening_to(ours) as heard, closing(theirs):
        with interrupted_by(speak):
            for _ in range(100):
                theirs.say(b"e", body)
        theirs.say(b"e", body)
    assert heard.count((b"e", body)) == 101
    assert set(heard) == {(b"e", body), (b"p", b"by the way")}


def test_what_is_no_message_is_an_error() -> None:
    """A text that somebody wrote into the line would else be waited for until it is as long as it seems to say."""
    ours, theirs = Line.pair()
    theirs._end.send(b"hello, world")
    with pytest.raises(ValueError, match="no message"):
        ours.hear(5)


def test_a_process_that_holds_thousands_of_files_can_listen() -> None:
    """Modules of tasks may open what they like, and the line comes after it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        ours, theirs = Line.pair()
        assert ours._end.fileno() > 1024
        theirs.say(b"e", b"25")
        assert ours.hear(5) == [(b"e", b"25")]
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
