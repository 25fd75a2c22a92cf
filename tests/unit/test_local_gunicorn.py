"""Where gunicorn listens."""

from __future__ import annotations

import pytest

from aj.errors import SettingsError
from aj.local.gunicorn_conf import address
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
