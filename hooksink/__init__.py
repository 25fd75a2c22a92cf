"""hooksink: a receiver of webhooks that keeps a receipt of each in a log.

`hooksink.app` is the WSGI application for `gunicorn hooksink:app`. It is built when it is first asked for: importing
the package reads no environment and loads no framework. Nothing else is public; an application that wants a receiver
of its own making calls `hooksink.receiver.create_app`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hooksink.wsgi import app

__all__ = ["app"]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("hooksink.wsgi").app
