"""Where gunicorn listens, and how many clients one process of it takes."""

from __future__ import annotations

import resource

import pytest

from aj.errors import SettingsError
from aj.local.gunicorn_conf import address, connections
from aj.settings import Settings


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "127.0.0.1:8140"),
        ({"AJ_PORT": "9000"}, "127.0.0.1:9000"),
        ({"AJ_HOST": "::1"}, "[::1]:8140"),
        ({"PORT": "5000"}, "0.0.0.0:5000"),
        ({"PORT": "5000", "AJ_HOST": "127.0.0.1"}, "127.0.0.1:5000"),
        ({"PORT": "5000", "AJ_PORT": "9000"}, "127.0.0.1:9000"),
        ({"PORT": ""}, "127.0.0.1:8140"),
    ],
)
def test_our_settings_win_over_the_platforms_port_and_that_over_the_defaults(
    environ: dict[str, str], expected: str
) -> None:
    """A hosting platform's PORT opens all addresses, since its requests come from outside."""
    assert address(Settings.from_env(environ), environ) == expected


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1", "80 81"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    """The message names the variable, its value and what is accepted."""
    with pytest.raises(SettingsError, match=f"PORT is '{port}'; accepted: a whole number from 1 to 65535"):
        address(Settings(), {"PORT": port})


@pytest.mark.parametrize(
    ("limits", "raised_to", "expected"),
    [
        ((1024, 20_000), 1456, 1256),
        ((256, resource.RLIM_INFINITY), 1456, 1256),
        ((1024, 1024), 1024, 824),
        ((256, 600), 600, 400),
        ((4096, 4096), None, 1256),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None, 1256),
    ],
)
def test_a_process_takes_no_more_clients_than_it_has_files_for(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], raised_to: int | None, expected: int
) -> None:
    """The soft limit is raised where it is too low; above the hard one there is nothing to be had."""
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _which, wanted: seen.append(wanted))
    assert connections(256) == expected
    assert seen == ([] if raised_to is None else [(raised_to, limits[1])])


def test_the_most_threads_leave_room_for_clients_between_two_requests() -> None:
    """Else gunicorn would end every connection after its answer."""
    assert connections(1024) > 1024
