"""Tasks that end in every way there is."""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

from aj import TaskError, report_progress, task


@task
def square(n: int) -> int:
    return n * n


@task
def give(value: str) -> Any:
    """Returns one of the values that a result may have, or may not."""
    return {
        "null": None,
        "zero": 0,
        "false": False,
        "empty": "",
        "list": [],
        "nan": float("nan"),
        "object": object(),
        "surrogate": "\ud800",
        "circle": _circle(),
        "huge integer": 10**5000,
        "text": "grün ✓",
    }[value]


@task
def give_bytes(size: int) -> str:
    return "x" * size


@task
def fail(text: str, public: bool = False) -> None:
    raise TaskError(text) if public else ValueError(text)


@task
def wait_for_file(path: str) -> str:
    """Runs until the file is there, and leaves a mark beside it when it has started."""
    with Path(path + ".started").open("a") as mark:
        mark.write(f"{os.getpid()}\n")
    while not Path(path).exists():
        threading.Event().wait(0.01)
    return "seen"


@task(timeout_s=1)
def run_for_ever() -> None:
    while True:
        threading.Event().wait(0.05)


@task(timeout_s=1)
def swallow_exceptions() -> str:
    while True:
        try:
            threading.Event().wait(0.05)
        except Exception:
            return "swallowed"


@task(timeout_s=1)
def swallow_everything() -> str:
    try:
        while True:
            threading.Event().wait(0.05)
    except BaseException:
        return "swallowed"


@task(timeout_s=1)
def hold_off_signals() -> None:
    """Blocks the alarm, as C code that does not return would."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait(120)


@task
def exit_with(code: int) -> None:
    os._exit(code)


@task
def leave(code: int) -> None:
    raise SystemExit(code)


@task
def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task
def leave_a_child_and_die() -> None:
    """A process that outlives the work-horse and holds everything open that it inherited."""
    if os.fork() == 0:
        threading.Event().wait(3)
        os._exit(0)
    os._exit(0)


@task
def report(fractions: list[float]) -> str:
    for fraction in fractions:
        report_progress(fraction, f"at {fraction}")
    return "reported"


@task
def announce(message: str, path: str) -> None:
    """Reports `message`, and runs until the file is there."""
    report_progress(0.5, message)
    while not Path(path).exists():
        threading.Event().wait(0.01)


@task
def speak(text: str) -> None:
    """Says `text` in the log, itself and from a thread of its own."""
    log = logging.getLogger("shop")
    log.info("%s", text, extra={"price": 5, "task": "mine"})
    thread = threading.Thread(target=log.warning, args=("%s", text))
    thread.start()
    thread.join()


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


@task(retries=2, retry_delays_s=(0,))
def try_again_at_once(fail: bool) -> str:
    if fail:
        raise ValueError
    return "done"


@task(retries=1, retry_delays_s=(3600,))
def try_again_later() -> None:
    raise ValueError


@task(result_ttl_s=1)
def forget_soon() -> None:
    pass


@task(result_ttl_s=200_000)
def keep_long() -> None:
    pass
