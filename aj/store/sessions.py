"""Browsers that have signed in to the dashboard: which caller each one is. The store keeps it, so that any process
knows it, and so that signing out ends it."""

from __future__ import annotations

from aj.settings import ApiKey
from aj.store.client import Client, errors_converted
from aj.store.keys import Keys

LIFE_S = 12 * 3600


class Sessions:
    """Sessions of one deployment. Each method raises StoreUnavailable."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client, self._keys = client, keys

    def begin(self, token: str, key: ApiKey) -> None:
        """The browser with this token is the caller with this key."""
        with errors_converted(self._client.breaker):
            self._client.set(self._keys.session(token), f"{key.name} {key.sha256}", ex=LIFE_S)

    def caller(self, token: str, keys: tuple[ApiKey, ...]) -> str | None:
        """Whose session it is; None where there is none, or its key is not among `keys` any more."""
        with errors_converted(self._client.breaker):
            told = self._client.get(self._keys.session(token))
        name, _, sha256 = told.decode().partition(" ") if isinstance(told, bytes) else ("", "", "")
        return name if any(each.name == name and each.sha256 == sha256 for each in keys) else None

    def end(self, token: str) -> None:
        """Nobody is signed in with this token any more."""
        with errors_converted(self._client.breaker):
            self._client.delete(self._keys.session(token))
