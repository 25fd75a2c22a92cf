"""`./run bounds`: the main tests with exactly the oldest releases that `pyproject.toml` allows, or with the newest.

The lock says what everything else is tested with. What is installed here goes into a venv of its own, which is removed
again; the tests are those of the clone. Tools that test are those of the lock, so that only what users install differs.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from tests.support.environments import Environment, Unavailable, copy_of_clone, make_environment
from tests.support.processes import ROOT, clean_env

TOOLS = (
    *("hypothesis", "openapi-schema-validator", "openapi-spec-validator"),
    *("pytest", "pytest-xdist", "standardwebhooks"),
)
# What touches a library of the table in docs/dependencies.md; without what takes long because of its waits.
INTEGRATION = (
    *("claim", "control", "dashboard", "delivery", "delivery_news", "desk", "embedded_store", "execution", "hooksink"),
    *("hosts_own", "idempotency", "metrics", "mounting", "openapi", "problems", "rate", "raw_requests", "round_trips"),
    *("rq_promises", "sentinel", "store_connections", "store_faults", "submission", "waiting", "web_worker"),
    *("work_horses", "worker"),
)
SUITE = ("tests/unit", *(f"tests/integration/test_{name}.py" for name in INTEGRATION))
BOUND = re.compile(r"([A-Za-z0-9-]+)>=([0-9]+\.[0-9]+\.[0-9]+)(?:,<[0-9]+)?")


def lowest(project: str) -> list[str]:
    """`flask==3.1.0` for each `flask>=3.1.0` that building or using needs, whatever the extra, by `pyproject.toml`.

    Raises: ValueError: a requirement has no lower bound of three numbers.
    """
    read = tomllib.loads(project)
    extras = read["project"]["optional-dependencies"]
    asked = [*read["build-system"]["requires"], *read["project"]["dependencies"], *chain(*extras.values())]
    found = {each: BOUND.fullmatch(each) for each in asked}
    if wrong := [each for each, match in found.items() if match is None]:
        raise ValueError(f"without a lower bound such as >=1.2.3: {', '.join(wrong)}")
    return [f"{match[1]}=={match[2]}" for match in found.values() if match is not None]


def locked(lock: str, names: Sequence[str]) -> list[str]:
    """The releases of `names` that the lock holds."""
    return [re.findall(rf"^{name}==[^ ]+", lock, re.MULTILINE)[0] for name in names]


def install(environment: Environment, source: Path, newest: bool) -> None:
    """The project with all extras, and what tests it. Raises: Unavailable, RuntimeError."""
    tools = locked((ROOT / "requirements.txt").read_text("utf-8"), TOOLS)
    extras = ",".join(tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])
    wanted = [f"{source}[{extras}]", *tools]
    if newest:
        environment.install("--upgrade", *wanted)
        return
    pins = lowest((source / "pyproject.toml").read_text("utf-8"))
    environment.install(*(each for each in pins if each.startswith("setuptools==")))
    # Pins beside the project itself, so that a bound of its metadata that forbids one of them is seen.
    environment.install("--no-build-isolation", *wanted, *pins)


def report(environment: Environment) -> str:
    """What is installed, in one line."""
    names = [each.partition("==")[0] for each in lowest((ROOT / "pyproject.toml").read_text("utf-8"))]
    code = f"from importlib.metadata import version\nprint(*(f'{{n}} {{version(n)}}' for n in {names[1:]}), sep=', ')"
    python = environment.run("python", "--version", cwd=environment.folder).stdout.strip()
    return f"{python}: {environment.run('python', '-c', code, cwd=environment.folder).stdout.strip()}"


def main(arguments: Sequence[str]) -> int:
    """The exit code of the tests; 1 where nothing can be installed."""
    parser = argparse.ArgumentParser(prog="./run bounds", description=__doc__, epilog="Other options are pytest's.")
    parser.add_argument("--newest", action="store_true", help="the newest releases instead of the oldest")
    parser.add_argument("--python", default=sys.executable, help="the Python to test with")
    options, others = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="aj-bounds-") as folder:
        try:
            environment = make_environment(Path(folder) / "venv", options.python)
            install(environment, copy_of_clone(Path(folder) / "source"), options.newest)
        except (Unavailable, RuntimeError) as why:
            print(f"bounds: {why}", file=sys.stderr)
            return 1
        print(report(environment), flush=True)
        tests = ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
        chosen = [] if any(each.startswith("tests/") for each in others) else SUITE
        command = [environment.python, "-m", "pytest", *tests, *others, *chosen]
        return subprocess.run(command, cwd=ROOT, env=clean_env({}), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
