"""Which `traceparent` headers are read, and which are passed over."""

from __future__ import annotations

import pytest

from aj.headers import TRACE_MAX_LENGTH, traceparent

TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE_ID}-{PARENT_ID}-01"
LATER = GOOD.replace("00-", "01-", 1)

READ = [
    GOOD,
    f"00-{TRACE_ID}-{PARENT_ID}-00",
    f"00-{TRACE_ID}-{PARENT_ID}-ff",
    f"00-{'0' * 31}1-{'0' * 15}1-03",
    LATER,
    f"fe-{TRACE_ID}-{PARENT_ID}-01",
    f"{LATER}-",
    f"{LATER}-what-the.future:brings",
    LATER + "-" + "x" * (TRACE_MAX_LENGTH - len(LATER) - 1),
]

PASSED_OVER = [
    "",
    " ",
    "00",
    f"ff-{TRACE_ID}-{PARENT_ID}-01",
    f"0-{TRACE_ID}-{PARENT_ID}-01",
    f"000-{TRACE_ID}-{PARENT_ID}-01",
    f"0x-{TRACE_ID}-{PARENT_ID}-01",
    f"00-{'0' * 32}-{PARENT_ID}-01",
    f"00-{TRACE_ID}-{'0' * 16}-01",
    f"01-{'0' * 32}-{PARENT_ID}-01",
    f"00-{TRACE_ID.upper()}-{PARENT_ID}-01",
    f"00-{TRACE_ID}-{PARENT_ID.upper()}-01",
    f"00-{TRACE_ID}-{PARENT_ID}-0A",
    f"00-{TRACE_ID[1:]}-{PARENT_ID}-01",
    f"00-{TRACE_ID}0-{PARENT_ID}-01",
    f"00-{TRACE_ID}-{PARENT_ID[1:]}-01",
    f"00-{TRACE_ID}-{PARENT_ID}-1",
    f"00-{TRACE_ID}-{PARENT_ID}-001",
    f"00-{TRACE_ID}-{PARENT_ID}",
    f"00-{TRACE_ID}-{PARENT_ID}-",
    f"00_{TRACE_ID}_{PARENT_ID}_01",
    f"00-{TRACE_ID}-{PARENT_ID}-01-",
    f"{GOOD}-more",
    f"{GOOD}.",
    f"{LATER}.more",
    f"{LATER}0",
    f"{GOOD}, {GOOD}",
    f"{GOOD},{GOOD}",
    f"{LATER},{LATER}",
    f"{LATER}-more, {LATER}",
    f"{LATER}-two words",
    f"{LATER}-é",
    f"{LATER}-\x7f",
    f"{LATER}-\n",
    LATER + "-" + "x" * (TRACE_MAX_LENGTH - len(LATER)),
    f"{GOOD}\n",
    f"{GOOD}\r\nX-Injected: 1",
    f"\n{GOOD}",
    f"\xa0{GOOD}",
    f'"{GOOD}"',
    GOOD.replace("4", "\u0664"),
    GOOD.replace("-", "\u2010"),
    "\ud800",
    "0" * 55,
    "x" * 100_000,
]


def shown(text: str) -> str:
    return ascii(text)[:70]


def test_no_header_is_no_trace() -> None:
    """As most submissions come."""
    assert traceparent(None) is None


@pytest.mark.parametrize("value", READ, ids=shown)
def test_a_good_header_is_kept_as_it_came(value: str) -> None:
    """Of a version that is not known yet too, whatever stands behind the fields that are."""
    assert traceparent(value) == value


@pytest.mark.parametrize("value", PASSED_OVER, ids=shown)
def test_a_malformed_header_is_no_trace_and_no_error(value: str) -> None:
    """A trace is the caller's business; no job fails for it."""
    assert traceparent(value) is None


def test_white_space_around_a_header_is_not_of_it() -> None:
    """Most servers take it away themselves. Source: RFC 9110 section 5.5."""
    assert traceparent(f" \t{GOOD} ") == GOOD
