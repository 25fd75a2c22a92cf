"""Answers that come before the answer: whoever asks by HTTP passes over them. Knows nothing of who asks, or what."""

from __future__ import annotations

import http.client
from http import HTTPStatus


class FinalResponse(http.client.HTTPResponse):
    """Passes over every interim answer before the final one, where http.client passes over 100 only.

    101 stays: nothing final comes after it, but another protocol, which we have not asked for.

    Source: RFC 9110, section 15.2. `_read_status` is not in the promises of http.client; a test holds that it is used.
    """

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        is_interim = HTTPStatus.SWITCHING_PROTOCOLS < status < HTTPStatus.OK
        return version, HTTPStatus.CONTINUE if is_interim else status, reason
