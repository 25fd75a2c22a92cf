"""The door of time: units, form and direction."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from aj import clock


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (999, "1970-01-01T00:00:00.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_795_964_400_123, "2026-11-29T15:00:00.123Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_written_in_utc_with_milliseconds(at_ms: int, text: str) -> None:
    """RFC 3339, always three digits behind the point and a Z."""
    assert clock.rfc3339(at_ms) == text


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/St_Johns"])
def test_the_zone_of_the_host_does_not_matter(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written times are UTC wherever the process runs."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        text = clock.rfc3339(1_795_964_400_123)
    time.tzset()
    assert text == "2026-11-29T15:00:00.123Z"


def test_a_written_time_reads_back_without_loss() -> None:
    """Milliseconds are not rounded on the way."""
    for at_ms in range(1_795_964_400_000, 1_795_964_401_000):
        read = datetime.fromisoformat(clock.rfc3339(at_ms))
        assert read.tzinfo == UTC
        assert round(read.timestamp() * 1000) == at_ms


def test_now_is_whole_milliseconds_of_the_wall_clock() -> None:
    """Between two looks at the host's own clock."""
    before_ns = time.time_ns()
    now_ms = clock.now_ms()
    after_ns = time.time_ns()
    assert type(now_ms) is int
    assert before_ns // 1_000_000 <= now_ms <= after_ns // 1_000_000


def test_the_monotonic_clock_never_steps_back() -> None:
    """Each look is at least as late as the one before."""
    looks = [clock.monotonic_s() for _ in range(1000)]
    assert looks == sorted(looks)
