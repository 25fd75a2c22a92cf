"""What the figures of a run depend on: the machine and the versions. Reads, changes nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from bench.environment import REQUIREMENTS

CPUINFO = Path("/proc/cpuinfo")


def machine(engine: str, with_celery: bool) -> str:
    """One line for each thing that a reader would ask."""
    names = {"Flask": "flask", "gunicorn": "gunicorn", "RQ": "rq", "redis-py": "redis", "hiredis": "hiredis"}
    versions = [f"{shown} {version(name)}" for shown, name in names.items()]
    found = re.search(r"^celery==([\w.]+)", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    if with_celery and found:
        versions.append(f"Celery {found[1]}")
    return "\n".join(
        (
            f"- {os.cpu_count()} processors ({_processor()}), {platform.system()} {platform.release()}; "
            f"load {os.getloadavg()[0]:.1f} before the run, niceness {os.nice(0)}",
            f"- {platform.python_implementation()} {platform.python_version()}; {', '.join(versions)}",
            f"- {engine} on a loopback port, with an append-only file (`appendfsync everysec`)",
        )
    )


def _processor() -> str:
    if CPUINFO.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", CPUINFO.read_text("utf-8", "replace"), re.MULTILINE)
        return found[1] if found else platform.machine()
    asked = subprocess.run(
        ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or platform.machine()
