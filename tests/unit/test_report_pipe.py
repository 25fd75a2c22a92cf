"""The pipe between a work-horse and its worker."""

from __future__ import annotations

import os
import time

from aj.worker.report_pipe import ReportPipe


def test_what_was_said_is_heard() -> None:
    """First that the task has ended, then that its outcome is written."""
    pipe = ReportPipe()
    pipe.listen()
    assert (pipe.has_ended, pipe.has_written) == (False, False)
    pipe.say_ended()
    pipe.wait(5)
    pipe.listen()
    assert (pipe.has_ended, pipe.has_written) == (True, False)
    pipe.say_written()
    pipe.listen()
    assert pipe.has_written
    pipe.listen_only()
    pipe.close()


def test_the_end_of_a_silent_process_is_noticed_at_once() -> None:
    """Not at the next full second, which would be the cost of every job."""
    pipe = ReportPipe()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    pipe.listen_only()
    begun_s = time.monotonic()
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        pipe.wait(30)
        pipe.listen()
    assert time.monotonic() - begun_s < 15
    assert not pipe.has_ended
    pipe.close()


def test_a_process_that_closed_its_end_and_lives_is_waited_for_without_spinning() -> None:
    """A task may close what it inherited; the pauses grow."""
    pipe = ReportPipe()
    pipe.listen_only()
    pipe.listen()
    rounds, begun_s = 0, time.monotonic()
    while time.monotonic() - begun_s < 0.2:
        pipe.wait(0.1)
        pipe.listen()
        rounds += 1
    assert rounds < 20
    pipe.close()
