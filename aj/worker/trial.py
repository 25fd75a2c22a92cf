"""The worker's look ahead: whether its tasks and its app can be loaded, and what it says of itself when it starts.

A worker that was started without its settings works too, with a store and tasks that nobody meant; so it says which.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence

from aj.errors import SettingsError
from aj.local.embedded import folder_of
from aj.local.preflight import shown_url
from aj.settings import Settings
from aj.worker.surroundings import load_tasks

EXIT_SETTINGS = 2
MOST_SHOWN = 20
MOST_BYTES = 32_768  # more than so many names take, and less than a pipe holds


def try_to_load(settings: Settings) -> tuple[int, list[str]]:
    """Loads tasks and app as the children will; gives the exit code, 0 where they can be loaded, and the first names.

    In a process of its own: they may start threads and open connections, and this one forks as long as it lives.
    """
    heard, told = os.pipe()
    try:
        pid = os.fork()
        if not pid:
            _load(settings, told)
        code = abs(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        # What is there is all: a process that they have started may hold the pipe open.
        return code, [] if code else json.loads(os.read(heard, MOST_BYTES))
    finally:
        os.close(heard)
        os.close(told)


def _load(settings: Settings, told: int) -> None:
    """Ends this process."""
    code = 1
    try:
        registry, _ = load_tasks(settings)
        names = [task.name for task in registry]
        more = [f"{len(names) - MOST_SHOWN} more"] if len(names) > MOST_SHOWN else []
        os.write(told, json.dumps(names[:MOST_SHOWN] + more).encode())
        code = 0
    except SettingsError as error:
        print(f"aj: {error}", file=sys.stderr)
        code = EXIT_SETTINGS
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # without waiting for threads that were started


def introduction(asked: Settings, names: Sequence[str]) -> str:
    """Where a worker with the settings `asked` finds its jobs, and the tasks that it knows; no password."""
    if asked.redis_url is None:
        store = f"its own in {folder_of(asked)}, since AJ_REDIS_URL is not set; an app of yours does not know of it"
    else:
        store = shown_url(asked.redis_url)
    return f"tasks of {', '.join(asked.tasks)}: {', '.join(names)}; store: {store}"
