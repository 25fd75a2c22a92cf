"""`./run bench [--full] [--only submit,status,…]`: measures, and prints tables.

A whole run writes them into docs/performance.md. Any other must never do so unless it is asked to by `--docs`: its
figures would stand beside older ones, as if all were of one run.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aj.clock import monotonic_s, now_ms, rfc3339
from aj.errors import SettingsError
from bench.environment import celery_python
from bench.machine import machine
from bench.plot import growth_picture, latency_picture
from bench.processes import ROOT, BenchError
from bench.questions import QUESTIONS
from bench.report import replaced, table
from bench.samples import Samples
from bench.scene import Plan, Scene
from bench.stacks import AJ, CELERY, RQ, Place, stacks_at
from bench.store import running_store

QUICK = Plan(rounds=2, seconds=1.2, sizes=(100, 10_000, 100_000))
FULL = Plan(rounds=5, seconds=4.0, sizes=(100, 10_000, 100_000, 1_000_000))
# What the environment may say to the programs that are measured, and must not.
DISTURBING = ("AJ_", "PORT", "REDIS_URL", "RQ_", "CELERY", "GUNICORN_CMD_ARGS", "WEB_CONCURRENCY", "FLASK_")
STACKS = {"aj": AJ, "rq": RQ, "celery": CELERY}
PICTURES: dict[str, Callable[[Samples], str]] = {"latency": latency_picture, "growth": growth_picture}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for."""

    plan: Plan
    questions: list[str]
    stacks: list[str]
    docs: Path | None
    command: str
    is_full: bool


def asked_by(arguments: Sequence[str]) -> Asked:
    parser = argparse.ArgumentParser(
        prog="./run bench",
        description="Measures aj beside Flask + RQ and Flask + Celery. A run with none of --only, --stacks, "
        "--rounds, --seconds and --sizes writes docs/performance.md; any other only prints, unless --docs is given.",
    )
    parser.add_argument("--full", action="store_true", help="more and longer rounds, and a million stored jobs")
    parser.add_argument("--only", help=f"some of {','.join(QUESTIONS)}")
    parser.add_argument("--stacks", help=f"some of {','.join(STACKS)}")
    parser.add_argument("--rounds", type=int, help=f"rounds ({QUICK.rounds}, full {FULL.rounds})")
    parser.add_argument("--seconds", type=float, help=f"of each figure ({QUICK.seconds:g}, full {FULL.seconds:g})")
    parser.add_argument("--sizes", help="how many jobs are stored in turn, such as 100,10000")
    parser.add_argument("--docs", type=Path, help="write into the performance.md of this folder, whatever the run is")
    parser.add_argument("--print-only", action="store_true", help="write nothing")
    given = parser.parse_args(arguments)
    usual = FULL if given.full else QUICK
    sizes = tuple(max(1, int(each)) for each in given.sizes.split(",")) if given.sizes else usual.sizes
    plan = Plan(given.rounds or usual.rounds, given.seconds or usual.seconds, sizes)
    chosen = {}
    for option, words, known in (("--only", given.only, QUESTIONS), ("--stacks", given.stacks, STACKS)):
        chosen[option] = [word for word in known if words is None or word in words.split(",")]
        wrong = sorted(set(words.split(",")) - set(known)) if words else []
        if wrong:
            parser.error(f"{option} is {words!r}; accepted: some of {','.join(known)}")
    is_whole = plan == usual and chosen == {"--only": list(QUESTIONS), "--stacks": list(STACKS)}
    docs = given.docs or (ROOT / "docs" if is_whole else None)
    command = "./run bench" + " --full" * given.full
    for option, all_of_them in (("--only", QUESTIONS), ("--stacks", STACKS)):
        command += "" if chosen[option] == list(all_of_them) else f" {option} {','.join(chosen[option])}"
    stacks = [STACKS[word] for word in chosen["--stacks"]]
    return Asked(plan, chosen["--only"], stacks, None if given.print_only else docs, command, given.full)


def measure(asked: Asked, folder: Path, environ: Mapping[str, str]) -> None:
    """Measures what is asked, prints each table as soon as it is there, and writes all of them at the end."""
    python = celery_python(_say) if CELERY in asked.stacks else None
    began_s = monotonic_s()
    env = {name: text for name, text in environ.items() if not name.startswith(DISTURBING)}
    parts, pictures = {}, {}
    with running_store(folder) as store:
        place = Place(store.url, folder, env, python)
        place.marks.touch()
        parts["machine"] = machine(store.engine, python is not None)
        _say(parts["machine"])
        scene = Scene(asked.plan, store, place, _say)
        chosen = [stack for stack in stacks_at(place) if stack.name in asked.stacks]
        with scene.serving(chosen) as sites:
            scene.sites = {site.stack.name: site for site in sites}
            scene.until_s = question_s = monotonic_s()
            for name in asked.questions:
                scene.until_s += math.inf if asked.is_full else QUESTIONS[name].usual_s
                samples = QUESTIONS[name].run(scene)
                if not samples.rows:
                    continue
                parts[name] = table(QUESTIONS[name], samples)
                _say(f"\n{QUESTIONS[name].title} ({monotonic_s() - question_s:.0f} s)\n\n{parts[name]}")
                question_s = monotonic_s()
                if name in PICTURES:
                    pictures[name] = PICTURES[name](samples)
    ended = (
        f"up to {asked.plan.rounds} x {asked.plan.seconds:g} s for each figure, {monotonic_s() - began_s:.0f} s in all"
    )
    parts["machine"] += f"\n- `{asked.command}` on {rfc3339(now_ms())[:10]}: {ended}"
    _say(f"\n{ended}")
    if asked.docs is not None:
        write(asked.docs, parts, pictures)
    else:
        _say("nothing is written")


def write(docs: Path, parts: Mapping[str, str], pictures: Mapping[str, str]) -> None:
    """Puts the parts and the pictures where they belong. Raises: BenchError: the document has no place for one."""
    path = docs / "performance.md"
    text = path.read_text("utf-8")
    for name, part in parts.items():
        text = replaced(text, name, part)
    path.write_text(text, "utf-8")
    for name, picture in pictures.items():
        (docs / f"performance_{name}.svg").write_text(picture, "utf-8")
    _say(f"written to {path}")


def _say(text: str) -> None:
    print(text, flush=True)


def main(arguments: Sequence[str]) -> int:
    asked = asked_by(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        with tempfile.TemporaryDirectory(prefix="aj-bench-") as folder:
            measure(asked, Path(folder), os.environ)
    except (BenchError, SettingsError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
