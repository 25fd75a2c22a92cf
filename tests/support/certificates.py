"""Certificates that vouch for themselves, as of an authority that nobody knows."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.tools import require_tools


def self_signed(folder: Path, name: str) -> Path:
    """A file with a key and a certificate for `name` and no other: `DNS:` or `IP:` with what follows it."""
    require_tools("openssl")
    path = folder / "both.pem"
    asked = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=tests"
    made = subprocess.run(
        ["openssl", *asked.split(), "-addext", f"subjectAltName={name}", "-keyout", path, "-out", "-"],
        capture_output=True,
        check=True,
    )
    path.write_bytes(path.read_bytes() + made.stdout)
    return path
