"""Programs that are not Python's and that some tests need: skipped without them, except in CI, which has them all."""

from __future__ import annotations

import os
import shutil

import pytest

# What to say to whoever lacks one. `.ci/run` installs those that CI would lack.
PACKAGES = {
    "node": "nodejs",
    "nginx": "nginx",
    "openssl": "openssl",
    "curl": "curl",
    "bash": "bash",
    "systemd-analyze": "systemd",
}


def require_tools(*names: str) -> None:
    """Skips the test where one of the programs is missing; fails it where `CI` is `true`."""
    missing = [name for name in names if shutil.which(name) is None]
    if not missing:
        return
    packages = " ".join(PACKAGES[name] for name in missing)
    told = f"{', '.join(missing)} is not here (on Debian: apt-get install {packages})"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    pytest.skip(told)
