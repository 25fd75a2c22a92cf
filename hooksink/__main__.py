"""`python -m hooksink`: becomes a gunicorn that serves the receiver on the loopback address."""

from __future__ import annotations

import os
import sys

from aj.errors import SettingsError
from aj.settings import Settings


def main() -> None:
    """Replaces this process by gunicorn. A wrong setting ends it with one line and exit code 2."""
    try:
        settings = Settings.from_env(os.environ)
    except SettingsError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    # Preloaded, so that a log that cannot be used stops the process instead of each worker that it starts.
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{settings.hooksink_port}", "--preload"]
    command += ["--worker-class", "gthread", "--workers", str(settings.web_workers)]
    command += ["--threads", str(settings.web_threads), "hooksink:app"]
    os.execv(sys.executable, command)  # noqa: S606 -- no shell is wanted


if __name__ == "__main__":
    main()
