"""Ids of jobs: their form, their order, and that nothing else passes for one."""

from __future__ import annotations

import uuid

import pytest

from aj.job import is_job_id, new_job_id

JOB_ID = "0192f0c1-2345-7abc-8def-0123456789ab"
CREATED_MS = 1_796_000_000_123


@pytest.mark.parametrize("at_ms", [0, 1, CREATED_MS, 2**48 - 1])
def test_an_id_is_a_uuid_of_version_7(at_ms: int) -> None:
    """In canonical form, with the variant of RFC 9562, and `is_job_id` knows it."""
    text = new_job_id(at_ms)
    made = uuid.UUID(text)
    assert str(made) == text
    assert made.variant == uuid.RFC_4122
    assert made.version == 7
    assert is_job_id(text)


@pytest.mark.parametrize("at_ms", [0, 1, CREATED_MS, 2**48 - 1])
def test_the_first_48_bits_of_an_id_are_its_time(at_ms: int) -> None:
    """In milliseconds since the epoch, big end first."""
    assert uuid.UUID(new_job_id(at_ms)).int >> 80 == at_ms


def test_a_time_beyond_48_bits_does_not_break_the_form() -> None:
    """A clock gone mad gives an id whose time is wrong, and an id all the same."""
    assert is_job_id(new_job_id(2**48 + 5))
    assert uuid.UUID(new_job_id(2**48 + 5)).int >> 80 == 5


def test_ids_sort_by_their_time() -> None:
    """As text, which is what lists and logs sort."""
    ids = [new_job_id(CREATED_MS + step) for step in range(2000)]
    assert ids == sorted(ids)


def test_a_hundred_thousand_ids_of_one_moment_differ() -> None:
    """74 bits are chance."""
    assert len({new_job_id(CREATED_MS) for _ in range(100_000)}) == 100_000


def test_every_bit_but_time_version_and_variant_is_chance() -> None:
    """Over 200 ids of one moment each of the 74 bits is seen as 0 and as 1."""
    ever_one, ever_zero = 0, 0
    for _ in range(200):
        value = uuid.UUID(new_job_id(CREATED_MS)).int & (2**80 - 1)
        ever_one, ever_zero = ever_one | value, ever_zero | ~value & (2**80 - 1)
    assert (ever_one & ever_zero).bit_count() == 74


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        JOB_ID.upper(),
        JOB_ID + "\n",
        "\n" + JOB_ID,
        JOB_ID + " ",
        JOB_ID + "0",
        JOB_ID[:-1],
        JOB_ID + JOB_ID,
        JOB_ID.replace("-", ""),
        JOB_ID.replace("-", "\u2010"),
        "{" + JOB_ID + "}",
        "urn:uuid:" + JOB_ID,
        JOB_ID.replace("7abc", "4abc"),
        JOB_ID.replace("7abc", "8abc"),
        JOB_ID.replace("8def", "7def"),
        JOB_ID.replace("8def", "cdef"),
        JOB_ID.replace("0", "\u0660"),
        JOB_ID.replace("0", "\uff10"),
        JOB_ID.replace("a", "g"),
        JOB_ID.replace("0", "\0"),
        JOB_ID[:-1] + "*",
        JOB_ID[:-1] + "\ud800",
        JOB_ID[:-1] + "\n",
        "*",
        "../" + JOB_ID,
        "aj:job:" + JOB_ID,
        str(uuid.UUID(int=0)),
        str(uuid.UUID(int=2**128 - 1, version=4)),
        "a" * 100_000,
    ],
    ids=lambda text: ascii(text)[:60],
)
def test_nothing_else_is_an_id(text: str) -> None:
    """Whatever `is_job_id` lets through becomes part of a key."""
    assert not is_job_id(text)
