"""Loads the Lua scripts and calls them. Each script's own header says what it does with which words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from redis.client import Pipeline
from redis.exceptions import NoScriptError

from aj.store.client import Client, errors_converted

Word = bytes | str | int | float


class Script:
    """One script, after the pieces that it needs. Called by its digest: one round trip."""

    def __init__(self, client: Client, *pieces: str) -> None:
        folder = files("aj.store").joinpath("lua")
        text = "\n".join(folder.joinpath(f"{piece}.lua").read_text("utf-8") for piece in ("common", *pieces))
        self._client, self._script = client, client.register_script(text)

    def __call__(self, keys: Sequence[str], args: Sequence[Word]) -> Any:
        """The script's reply. Raises: StoreUnavailable: the store cannot be used."""
        with errors_converted(self._client.breaker):
            call = ("EVALSHA", self._script.sha, len(keys), *keys, *args)
            try:
                return self._client.call(*call)
            except NoScriptError:  # a store that is new, or was emptied
                self._client.script_load(self._script.script)
                return self._client.call(*call)

    def put_into(self, pipe: Pipeline, keys: Sequence[str]) -> None:
        """Has a pipeline load and call it: two replies. In a pipeline nobody can teach a script that is not known."""
        pipe.script_load(self._script.script)
        pipe.evalsha(self._script.sha, len(keys), *keys)


def flattened(commands: Iterable[tuple[Any, ...]]) -> list[Word]:
    """Commands as `run_commands.lua` reads them: for each, the count of its words, then the words."""
    words: list[Word] = []
    for command in commands:
        words.append(len(command))
        words += command
    return words
