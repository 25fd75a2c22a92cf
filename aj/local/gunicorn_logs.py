"""gunicorn's own log as JSON: the logger class that is used where `AJ_LOG` is `json`."""

from __future__ import annotations

from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from aj import logs


class JsonLogger(Logger):  # type: ignore[misc]
    """gunicorn's logger, whose options say where to; each line is JSON, and so is what the app logs.

    A logger class, since with `logconfig_dict` gunicorn would write an access log that nobody asked for.
    """

    def setup(self, cfg: Any) -> None:
        """gunicorn calls it at the start and at each reload."""
        super().setup(cfg)
        logs.set_up("json")
        for handler in (*self.error_log.handlers, *self.access_log.handlers):
            handler.setFormatter(logs.JsonFormatter())
