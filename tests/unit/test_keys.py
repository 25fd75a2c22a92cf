"""The names of keys: under one prefix, each its own, and free of what a client wrote."""

from __future__ import annotations

import re

import pytest

from aj.store import keys as table
from aj.store.keys import Keys

KEYS = Keys("shop")
JOB_ID = "0192f0c1-2345-7abc-8def-0123456789ab"
ALL = [
    KEYS.job(JOB_ID),
    KEYS.tombstone(JOB_ID),
    KEYS.delivery(JOB_ID),
    KEYS.idempotency("", JOB_ID),
    KEYS.hosts,
    KEYS.due("127.0.0.1"),
    KEYS.busy("127.0.0.1"),
    KEYS.answers("127.0.0.1"),
    KEYS.rate(""),
    KEYS.rate("alice"),
    KEYS.active,
    KEYS.leases,
    KEYS.delayed,
    KEYS.active_of("alice"),
    KEYS.ended("failed"),
    KEYS.ended("failed", "alice"),
    KEYS.expiring,
    KEYS.metrics,
    KEYS.probe,
    KEYS.pending,
    KEYS.changes,
    KEYS.news,
    # These are made in `pace.lua`, from names that stand in a job's hash.
    "shop:pace:task:square",
    "shop:pace:queue:q:jobs2",
    "shop:pace:line:q:jobs2",
    # And these in `lists.lua` and `count.lua`.
    "shop:expiring:29943480",
    "shop:tally:499058",
    KEYS.session("a token"),
]


def test_every_key_stands_under_the_prefix_and_on_its_own() -> None:
    """Two applications share one store, and no two uses share one key."""
    assert all(each.startswith("shop:") for each in ALL)
    assert len(set(ALL)) == len(ALL)
    assert Keys("shop2").hosts not in ALL


def test_every_key_stands_in_the_table_of_its_file() -> None:
    """The table is what an operator reads."""
    rows = re.findall(r"^\| `([^`]+)`", table.__doc__ or "", re.MULTILINE)
    patterns = [re.sub(r"<\w+>", ".+", re.escape(row).replace(r"\<", "<").replace(r"\>", ">")) for row in rows]
    for each in ALL:
        assert any(re.fullmatch(pattern, each) for pattern in patterns), each
    for pattern in patterns:
        assert any(re.fullmatch(pattern, each) for each in ALL), pattern


def test_the_key_of_a_job_is_its_id_under_a_word() -> None:
    """Short enough to type into redis-cli."""
    assert KEYS.job(JOB_ID) == f"shop:job:{JOB_ID}"
    assert KEYS.tombstone(JOB_ID) == f"shop:tomb:{JOB_ID}"


@pytest.mark.parametrize("text", ["abc", "*", "a:b", "{}", "a\nb", "x" * 255, "é", '"', "\0"], ids=ascii)
def test_the_text_of_an_idempotency_key_never_shows(text: str) -> None:
    """It is hashed, so that it cannot be long, hold a pattern or look like another key."""
    assert re.fullmatch(r"shop:idem:[0-9a-f]{64}", KEYS.idempotency("", text))
    assert re.fullmatch(r"shop:idem:[0-9a-f]{64}", KEYS.idempotency(text, "abc"))


def test_owner_and_key_cannot_be_shifted_into_each_other() -> None:
    """No two pairs have one digest, wherever the colons stand."""
    pairs = [("", "ab"), ("a", "b"), ("ab", ""), ("a:", "b"), ("a", ":b"), (":", "ab"), ("1:a", "b"), ("", "1:a:b")]
    pairs += [("a:1", "b"), ("a", "1:b"), ("0:", "b"), ("", "0::b")]
    assert len({KEYS.idempotency(*pair) for pair in pairs}) == len(pairs)


def test_the_digest_of_a_key_stays_what_it_is() -> None:
    """Keys outlive a deployment: another digest in the next version would run every repeat again."""
    expected = "afa0079c123d20ab096f6b80812fa92c41d098adaed856b4594edcd7b4d3643e"
    assert KEYS.idempotency("alice", "abc") == f"shop:idem:{expected}"
