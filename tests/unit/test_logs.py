"""A line of the log: JSON whatever it holds, text as it was, and about the job that it is about."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from aj import logs
from tests.support.processes import ROOT, clean_env

JOB_ID = "0192f0c1-2345-7abc-8def-0123456789ab"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACE = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
OF_JOB = {"job_id": JOB_ID, "task": "sell", "attempt": 2, "traceparent": TRACE, "trace_id": TRACE_ID}


class Said(io.StringIO):
    """What a logger wrote, as lines."""

    def lines(self) -> list[str]:
        assert self.getvalue().endswith("\n")
        return self.getvalue()[:-1].split("\n")

    def one(self) -> dict[str, Any]:
        """The one line, read as strict JSON: ASCII, no NaN, no half of a pair."""
        [line] = self.lines()
        assert line.isascii()
        found: dict[str, Any] = json.loads(line, parse_constant=pytest.fail)
        json.dumps(found, ensure_ascii=False).encode("utf-8")
        return found


@pytest.fixture
def said() -> Said:
    return Said()


def logger_to(said: Said, formatter: logging.Formatter) -> logging.Logger:
    handler = logging.StreamHandler(said)
    handler.setFormatter(formatter)
    log = logging.Logger("shop", logging.DEBUG)
    log.addHandler(handler)
    return log


@pytest.fixture
def log(said: Said, monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """Writes JSON to `said`; a line that cannot be written fails the test."""
    monkeypatch.setattr(logging.Handler, "handleError", lambda *_: pytest.fail("a line was lost"))
    return logger_to(said, logs.JsonFormatter())


# -- JSON --------------------------------------------------------------------------------------------------------


def test_a_line_says_when_how_grave_who_and_what(log: logging.Logger, said: Said) -> None:
    """In this order, and nothing that is not known."""
    log.warning("sold %d", 3)
    found = said.one()
    assert list(found) == ["at", "level", "logger", "message"]
    assert (found["level"], found["logger"], found["message"]) == ("WARNING", "shop", "sold 3")


def test_the_time_is_rfc_3339_in_utc_with_milliseconds() -> None:
    """Whatever the zone of the host."""
    record = logging.makeLogRecord({"msg": "x", "created": 1_796_000_001.0429})
    assert json.loads(logs.JsonFormatter().format(record))["at"] == "2026-11-30T00:53:21.042Z"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("one\ntwo\r\nthree\u2028four\x85", "one\ntwo\r\nthree\u2028four\x85"),
        ('"}\n{"level": "FORGED', '"}\n{"level": "FORGED'),
        ("\x00\x1b[31m\x7f", "\x00\x1b[31m\x7f"),
        ("grün 😀 日本", "grün 😀 日本"),
        ("half \ud83d", "half \ufffd"),
        ("\udc00\ud83d\ude00\udc00", "\ufffd😀\ufffd"),
        ("\\ud800 \\\\ud800 \\\ud800", "\\ud800 \\\\ud800 \\\ufffd"),
        ("100 %", "100 %"),
        ("", ""),
    ],
    ids=ascii,
)
def test_any_message_is_one_line_of_json(log: logging.Logger, said: Said, message: str, shown: str) -> None:
    """Of ASCII, so that no encoding of a stream can break it."""
    log.info(message)
    assert said.one()["message"] == shown


class Mute:
    """An object of a class whose texts break."""

    def __str__(self) -> str:
        raise KeyError

    __repr__ = __str__


@pytest.mark.parametrize(
    ("message", "args", "shown"),
    [
        ("sold %d", ("three",), "'sold %d' with ('three',)"),
        ("sold", (3,), "'sold' with (3,)"),
        ("sold %s", (Mute(),), "(cannot be shown)"),
        (Mute(), (), "(cannot be shown)"),
        ({"a": 1}, (), "{'a': 1}"),
    ],
)
def test_a_message_that_cannot_be_made_is_still_a_line(
    log: logging.Logger, said: Said, message: Any, args: tuple[Any, ...], shown: str
) -> None:
    """With what there is of it; logging itself would print a traceback in its place."""
    log.info(message, *args)
    assert said.one()["message"] == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"a": [1, None, "é"]}, {"a": [1, None, "é"]}),
        (0.5, 0.5),
        (None, None),
        ("half \ud800", "half \ufffd"),
        (["half \ud800"], ["half \ufffd"]),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ({1, 2}, "{1, 2}"),
        (b"bytes\n", "b'bytes\\n'"),
        ({"a": object}, "{'a': <class 'object'>}"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (10**5000, "(cannot be shown)"),
        (Mute(), "(cannot be shown)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_field_of_the_callers_own_is_kept(log: logging.Logger, said: Said, given: Any, shown: Any) -> None:
    """As JSON where it has one, else as its `repr`."""
    log.info("x", extra={"field": given})
    assert said.one()["field"] == shown


def test_a_circle_is_no_trouble(log: logging.Logger, said: Said) -> None:
    """Nor what is nested too deep to be shown, and the other fields stay as they are."""
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    log.info("x", extra={"circle": circle, "deep": deep, "other": [1]})
    found = said.one()
    assert (found["circle"], found["deep"], found["other"]) == ("[[...]]", "(cannot be shown)", [1])


def test_no_field_of_the_callers_own_replaces_one_of_ours(log: logging.Logger, said: Said) -> None:
    """A task that says `job_id=` of something else does not hide which job it is."""
    forged = dict.fromkeys(("at", "level", "logger", *OF_JOB), "forged")
    with logs.about(JOB_ID, "sell", 2, TRACE):
        log.info("x", extra={**forged, "other": 1})
    found = said.one()
    assert "forged" not in found.values()
    assert found["other"] == 1


def test_an_exception_is_one_text_with_its_traceback(log: logging.Logger, said: Said) -> None:
    """Its lines are in the text and not in the log."""
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("it broke")
    found = said.one()
    assert found["exception"].startswith("Traceback (most recent call last):\n")
    assert found["exception"].endswith("ValueError: two\nlines")
    assert "exception" not in found["message"]


def test_an_exception_whose_text_breaks_is_no_trouble(log: logging.Logger, said: Said) -> None:
    """It may be of any class."""

    class Wordless(Exception):
        def __str__(self) -> str:
            raise KeyError

    log.error("it broke", exc_info=Wordless())
    assert "Wordless" in said.one()["exception"]


def test_no_exception_is_no_field(log: logging.Logger, said: Said) -> None:
    """`exc_info=True` says so where nothing was raised."""
    log.error("x", exc_info=True)
    assert "exception" not in said.one()


def test_a_stack_that_was_asked_for_is_shown(log: logging.Logger, said: Said) -> None:
    """In one text, too."""
    log.info("x", stack_info=True)
    assert "test_a_stack_that_was_asked_for_is_shown" in said.one()["stack"]


# -- what a line is about ------------------------------------------------------------------------------------------


def test_the_fields_of_a_job_are_those_that_are_known() -> None:
    """The trace's id can be searched for by itself."""
    assert logs.of_job(JOB_ID, "sell", 2, TRACE) == OF_JOB
    assert logs.of_job(JOB_ID) == {"job_id": JOB_ID}


def test_every_line_of_a_block_is_about_its_job(log: logging.Logger, said: Said) -> None:
    """Whoever writes it; an inner block may be about another, and after the block it is over."""
    with logs.about("outer", "sell"):
        with logs.about(JOB_ID, "sell", 2, TRACE):
            log.info("in")
        log.info("out")
    log.info("after")
    inner, outer, after = (json.loads(line) for line in said.lines())
    assert inner.items() >= OF_JOB.items()
    assert (outer["job_id"], outer["task"]) == ("outer", "sell")
    assert "attempt" not in outer
    assert not after.keys() & OF_JOB.keys()


def test_a_block_that_breaks_is_over(log: logging.Logger, said: Said) -> None:
    """The next job's lines are not about this one."""
    with pytest.raises(KeyError), logs.about(JOB_ID):
        raise KeyError
    log.info("after")
    assert "job_id" not in said.one()


def in_a_thread(call: Callable[[], None]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def test_a_thread_is_about_nothing_unless_the_process_is(
    log: logging.Logger, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each thread of a deliverer has its own job; a work-horse has one, whatever threads its task starts."""
    monkeypatch.setattr(logs, "_about_in_every_thread", {})
    with logs.about(JOB_ID, "sell", 2, TRACE):
        in_a_thread(lambda: log.info("before"))
        logs.about_in_every_thread()
        in_a_thread(lambda: log.info("then"))
    before, then = (json.loads(line) for line in said.lines())
    assert "job_id" not in before
    assert then.items() >= OF_JOB.items()


# -- text ------------------------------------------------------------------------------------------------------------


def test_a_line_of_text_is_as_it_always_was(said: Said) -> None:
    """Time, logger, message, traceback."""
    logger_to(said, logs.TextFormatter()).error("sold %d", 3, exc_info=ValueError("x"))
    first, *rest = said.lines()
    assert first[:4].isdigit()
    assert first[23:] == " shop: sold 3"
    assert rest == ["ValueError: x"]


def test_a_line_of_text_names_its_job_where_the_message_does_not(said: Said) -> None:
    """Our own lines do already."""
    log = logger_to(said, logs.TextFormatter())
    with logs.about(JOB_ID, "sell", 2, TRACE):
        log.info("sold")
        log.info("job %s: started", JOB_ID)
    with logs.about(JOB_ID):
        log.info("sold")
    assert [line[23:] for line in said.lines()] == [
        f" shop: sold [job {JOB_ID}, trace {TRACE_ID}]",
        f" shop: job {JOB_ID}: started",
        f" shop: sold [job {JOB_ID}]",
    ]


# -- a process ---------------------------------------------------------------------------------------------------------

ALL_KINDS = """
import logging, threading, warnings
from aj import logs
logs.set_up("json")
logging.getLogger("shop").info("said")
logging.getLogger("shop").debug("not said")
warnings.warn("old")
def leave(): raise SystemExit
def fall(): raise ValueError("in a thread")
for each in (leave, fall):
    thread = threading.Thread(target=each)
    thread.start()
    thread.join()
raise ValueError("at last")
"""


def test_a_process_that_was_set_up_writes_nothing_but_json() -> None:
    """From INFO on; warnings and what nobody caught are lines of it too."""
    ended = subprocess.run(
        [sys.executable, "-c", ALL_KINDS], env=clean_env({}), cwd=ROOT, capture_output=True, text=True, check=False
    )
    said, warned, fell, ended_by = (json.loads(line) for line in ended.stderr.splitlines())
    assert (said["logger"], said["message"]) == ("shop", "said")
    assert (warned["logger"], "UserWarning: old" in warned["message"]) == ("py.warnings", True)
    assert fell["exception"].endswith("ValueError: in a thread")
    assert (ended_by["level"], ended_by["exception"].splitlines()[-1]) == ("CRITICAL", "ValueError: at last")
    assert (ended.returncode, ended.stdout) == (1, "")
