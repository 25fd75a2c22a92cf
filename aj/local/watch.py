"""A long-lived process sees to it that the embedded store outlives its keeper: `watch_store`.

The keeper starts a server again that died; nobody but the users of the store can do so for the keeper.
Each of them may look: the locks let one start it, and the others find it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace

from aj.errors import SettingsError
from aj.local.embedded import folder_of, revive_store, uses_store
from aj.local.waiting import pause
from aj.settings import Settings

log = logging.getLogger("aj.store")

LOOK_S, LONGEST_PAUSE_S = 1.0, 30.0


def watch_store(settings: Settings, environ: Mapping[str, str]) -> None:
    """From now on a thread of this process starts the store again within a second or so of its keeper's end.

    `settings` are the ones that `ensure_store` was given. Nothing happens in a process that does not use the store.
    For a process that does not fork any more: in a child, whatever lock the thread holds would stay locked.
    """
    if uses_store(settings):
        settled = replace(settings, data_dir=str(folder_of(settings)))  # whatever becomes of the working folder
        threading.Thread(target=_watch, args=(settled, dict(environ)), name="aj-store", daemon=True).start()


def _watch(settings: Settings, environ: Mapping[str, str]) -> None:
    pause_s = LOOK_S
    while True:
        pause(pause_s)
        try:
            if revive_store(settings, environ):
                log.warning("the store in %s ended by itself; it runs again", settings.data_dir)
            pause_s = LOOK_S
        except (SettingsError, OSError) as error:
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            log.error("the store ended by itself and cannot be started: %s; again in %.0f s", error, pause_s)
